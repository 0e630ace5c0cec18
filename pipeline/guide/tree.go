package guide

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// tree is a JSON value whose objects keep the order of their members: a text has them in
// the schema's order.
type tree struct {
	kind    kindOfTree
	raw     []byte // of a literal: a text, a number, true, false, null
	members []member
	items   []*tree
}

type kindOfTree uint8

const (
	isLiteral kindOfTree = iota
	isObject
	isList
)

type member struct {
	key   string
	value *tree
}

// parseTree reads one JSON value.
func parseTree(data []byte) (*tree, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	t, err := readTree(d, 0)
	if err == nil {
		if _, end := d.Token(); end != io.EOF {
			err = errors.New("there is more than one JSON value")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("no valid JSON: %w", err)
	}
	return t, nil
}

func readTree(d *json.Decoder, depth int) (*tree, error) {
	if depth > 4*deepest {
		return nil, fmt.Errorf("values are more than %d deep", 4*deepest)
	}
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch v := token.(type) {
	case json.Delim:
		t := &tree{kind: isObject}
		if v == '[' {
			t.kind = isList
		}
		seen := map[string]bool{}
		for d.More() {
			var key string
			if t.kind == isObject {
				k, err := d.Token()
				if err != nil {
					return nil, err
				}
				if key, _ = k.(string); seen[key] {
					return nil, fmt.Errorf("%s is there twice", quote(key))
				}
				seen[key] = true
			}
			e, err := readTree(d, depth+1)
			if err != nil {
				return nil, err
			}
			if t.kind == isObject {
				t.members = append(t.members, member{key, e})
			} else {
				t.items = append(t.items, e)
			}
		}
		_, err := d.Token()
		return t, err
	case string:
		return literal(v), nil
	case json.Number:
		return &tree{raw: []byte(v)}, nil
	case bool:
		return &tree{raw: strconv.AppendBool(nil, v)}, nil
	}
	return &tree{raw: []byte("null")}, nil
}

// append writes the value as JSON.
func (t *tree) append(b []byte) []byte {
	switch t.kind {
	case isObject:
		b = append(b, '{')
		for i, m := range t.members {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(append(b, quote(m.key)...), ':')
			b = m.value.append(b)
		}
		return append(b, '}')
	case isList:
		b = append(b, '[')
		for i, e := range t.items {
			if i > 0 {
				b = append(b, ',')
			}
			b = e.append(b)
		}
		return append(b, ']')
	}
	return append(b, t.raw...)
}

// size is about how many bytes append writes, of at most so many.
func (t *tree) size(most int) int {
	n := len(t.raw) + 2
	for _, m := range t.members {
		if n >= most {
			return most
		}
		n += len(m.key) + 4 + m.value.size(most-n)
	}
	for _, e := range t.items {
		if n >= most {
			return most
		}
		n += 1 + e.size(most-n)
	}
	return n
}

// get returns a member of an object; nil: it has none.
func (t *tree) get(key string) *tree {
	for _, m := range t.members {
		if m.key == key {
			return m.value
		}
	}
	return nil
}

// text is the value of a literal that is text.
func (t *tree) text() string {
	var s string
	if t.kind != isLiteral || json.Unmarshal(t.raw, &s) != nil {
		return ""
	}
	return s
}

func (t *tree) isBool() bool { return string(t.raw) == "true" || string(t.raw) == "false" }

// refers reports whether there is a reference in a schema, or what may be one.
func (t *tree) refers() bool {
	if t.get("$ref") != nil {
		return true
	}
	return slices.ContainsFunc(t.members, func(m member) bool { return m.value.refers() }) ||
		slices.ContainsFunc(t.items, (*tree).refers)
}

// at follows a JSON pointer (RFC 6901).
func (t *tree) at(pointer string) (*tree, error) {
	if pointer == "" {
		return t, nil
	}
	for _, part := range strings.Split(pointer, "/")[1:] {
		part = unescaped.Replace(part)
		var next *tree
		if t.kind == isList {
			if i, err := strconv.Atoi(part); err == nil && i >= 0 && i < len(t.items) {
				next = t.items[i]
			}
		} else {
			next = t.get(part)
		}
		if next == nil {
			return nil, fmt.Errorf("there is no %s", quote(part))
		}
		t = next
	}
	return t, nil
}

// Dense drops the members of objects that are null: a column of structs has each field
// that one of its rows has.
func Dense(data []byte) []byte {
	t, err := parseTree(data)
	if err != nil {
		return data
	}
	t.dense()
	return t.append(nil)
}

func (t *tree) dense() {
	t.members = slices.DeleteFunc(t.members, func(m member) bool { return string(m.value.raw) == "null" })
	for _, m := range t.members {
		m.value.dense()
	}
	for _, e := range t.items {
		e.dense()
	}
}

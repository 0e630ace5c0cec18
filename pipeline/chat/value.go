package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/ardanlabs/jinja"
)

// maxJSONDepth bounds the nesting of messages, tools and arguments.
const maxJSONDepth = 100

// decode turns JSON text into a template's value. Objects keep their order.
func decode(data []byte) (jinja.Value, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	v, err := decodeValue(d, 0)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return v, err
	}
	if _, err := d.Token(); err != io.EOF {
		return v, errors.New("more text after the JSON value")
	}
	return v, nil
}

func decodeValue(d *json.Decoder, depth int) (jinja.Value, error) {
	none := jinja.None()
	if depth > maxJSONDepth {
		return none, fmt.Errorf("JSON nested more than %d deep", maxJSONDepth)
	}
	token, err := d.Token()
	if err != nil {
		return none, err
	}
	switch token := token.(type) {
	case json.Delim:
		if token == '[' {
			items := []jinja.Value{}
			for d.More() {
				v, err := decodeValue(d, depth+1)
				if err != nil {
					return none, err
				}
				items = append(items, v)
			}
			_, err := d.Token()
			return jinja.NewList(items), err
		}
		object := jinja.NewDict()
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return none, err
			}
			v, err := decodeValue(d, depth+1)
			if err != nil {
				return none, err
			}
			object.AsDict().Set(key.(string), v)
		}
		_, err := d.Token()
		return object, err
	case json.Number:
		return number(token), nil
	case string:
		return jinja.NewString(token), nil
	case bool:
		return jinja.NewBool(token), nil
	}
	return none, nil
}

// number keeps integers exact. Those beyond 64 bits have no value in the
// library; a callable that is never called carries their digits.
func number(n json.Number) jinja.Value {
	if !strings.ContainsAny(n.String(), ".eE") {
		if i, err := n.Int64(); err == nil {
			return jinja.NewInt(i)
		}
		return jinja.NewCallable(bigInt+n.String(), nil)
	}
	f, _ := n.Float64() // infinite if too large, as in Python
	return jinja.NewFloat(f)
}

const bigInt = "integer "

// digits returns the digits of an integer beyond 64 bits.
func digits(v jinja.Value) (string, bool) {
	if !v.IsCallable() {
		return "", false
	}
	return strings.CutPrefix(v.AsCallable().Name, bigInt)
}

// decodeMessages decodes messages and makes them what templates expect of
// Python's: columnar files give every message every key, so null stands for
// absent; and arguments of tool calls that are JSON text are objects.
func decodeMessages(data []byte) (jinja.Value, error) {
	v, err := decode(data)
	if err != nil {
		return v, fmt.Errorf("messages: %w", err)
	}
	if v.IsString() { // JSON text in JSON
		if v, err = decode([]byte(v.AsString())); err != nil {
			return v, fmt.Errorf("messages: %w", err)
		}
	}
	if !v.IsList() {
		return v, errors.New("messages: not an array")
	}
	for i, m := range v.AsList().Items {
		if err := cleanMessage(m); err != nil {
			return v, fmt.Errorf("message %d: %w", i, err)
		}
	}
	return v, nil
}

func fromTurns(turns []Turn) jinja.Value {
	items := make([]jinja.Value, len(turns))
	for i, t := range turns {
		items[i] = jinja.NewDict()
		items[i].AsDict().Set("role", jinja.NewString(t.Role))
		items[i].AsDict().Set("content", jinja.NewString(t.Content))
	}
	return jinja.NewList(items)
}

func cleanMessage(m jinja.Value) error {
	if !m.IsDict() {
		return errors.New("not an object")
	}
	d := m.AsDict()
	dropNulls(d, "content") // a null content is said so by the OpenAI format
	if role, ok := d.Get("role"); !ok || !role.IsString() {
		return errors.New("role is missing or not a string")
	}
	if content, _ := d.Get("content"); content.IsList() {
		for _, part := range content.AsList().Items {
			if part.IsDict() {
				dropNulls(part.AsDict(), "")
			}
		}
	}
	calls, ok := d.Get("tool_calls")
	if !ok {
		return nil
	}
	if calls.IsString() {
		var err error
		if calls, err = decode([]byte(calls.AsString())); err != nil {
			return fmt.Errorf("tool_calls: %w", err)
		}
		d.Set("tool_calls", calls)
	}
	if !calls.IsList() {
		return errors.New("tool_calls: not an array")
	}
	for i, call := range calls.AsList().Items {
		if !call.IsDict() {
			return fmt.Errorf("tool call %d: not an object", i)
		}
		c := call.AsDict()
		dropNulls(c, "")
		if f, ok := c.Get("function"); ok && f.IsDict() {
			c = f.AsDict()
			dropNulls(c, "")
		}
		if a, ok := c.Get("arguments"); ok && a.IsString() {
			if v, err := decode([]byte(a.AsString())); err == nil && v.IsDict() {
				c.Set("arguments", v)
			}
		}
	}
	return nil
}

// dropNulls removes the keys of d that are null, but for one.
func dropNulls(d *jinja.Dict, but string) {
	kept := d.Keys[:0]
	for _, key := range d.Keys {
		if key != but && d.Data[key].IsNone() {
			delete(d.Data, key)
			continue
		}
		kept = append(kept, key)
	}
	d.Keys = kept
}

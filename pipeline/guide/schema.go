package guide

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// NewSchema is a JSON text that is valid by a schema. The error names the keyword that
// cannot be followed, and where it is.
func NewSchema(schema []byte, w Whitespace) (Spec, error) {
	if len(schema) > mostText {
		return Spec{}, fmt.Errorf("a schema of %d bytes is longer than %d", len(schema), mostText)
	}
	root, err := parseTree(schema)
	if err != nil {
		return Spec{}, err
	}
	c := &checker{root: root}
	if err := c.identify(); err != nil {
		return Spec{}, err
	}
	out, err := c.schema(root, "", 0)
	if err != nil {
		return Spec{}, err
	}
	if out, err = c.finish(out, w); err != nil {
		return Spec{}, err
	}
	return Spec{Schema, string(out.append(nil))}, nil
}

// Whitespace is what may be between the parts of a JSON text. The zero value: any, but
// not endless.
type Whitespace struct {
	None    bool   // ", " and ": " alone
	Pattern string // a regular expression of it
}

// usualWhitespace is enough for pretty printing, and is not endless: models that have
// nothing to say write white space until they are cut.
const usualWhitespace = `\x20|\x0D?\x0A(?:\x20{0,24}|\x09{0,8})`

// role is what a keyword of a schema is.
type role uint8

const (
	refused    role = iota // it cannot be followed
	annotation             // it changes nothing
	value                  // it is followed, and has no schema in it
	one                    // its value is a schema
	many                   // its value is a list of schemas
	named                  // its value is an object of schemas
	oneOrMany              // a schema or a list
	shelf                  // schemas by name, which are there to be referred to
)

// keywords are JSON Schema's, of the drafts 4 to 2020-12, with those that OpenAPI and
// Pydantic add. One that is not here is refused too.
var keywords = map[string]role{
	"$schema": value, "$id": annotation, "id": annotation, "$anchor": annotation, "$comment": annotation,
	"title": annotation, "description": annotation, "default": annotation, "examples": annotation,
	"example":  annotation,
	"readOnly": annotation, "writeOnly": annotation, "deprecated": annotation, "discriminator": annotation,
	"externalDocs": annotation, "xml": annotation,
	// of editors, tools and form builders
	"markdownDescription": annotation, "enumDescriptions": annotation, "markdownEnumDescriptions": annotation,
	"enumNames": annotation, "errorMessage": annotation, "patternErrorMessage": annotation,
	"deprecationMessage": annotation, "defaultSnippets": annotation, "doNotSuggest": annotation,
	"suggestSortText": annotation, "allowComments": annotation, "allowTrailingCommas": annotation,
	"fileMatch": annotation, "tsType": annotation, "tsEnumNames": annotation,
	"$ref": value, "$defs": shelf, "definitions": shelf,
	"type": value, "enum": value, "const": value,
	"anyOf": many, "oneOf": many, "allOf": many,
	"properties": named, "patternProperties": named, "additionalProperties": one, "required": value,
	"minProperties": value, "maxProperties": value,
	"items": oneOrMany, "prefixItems": many, "additionalItems": one, "minItems": value, "maxItems": value,
	"minLength": value, "maxLength": value, "pattern": value, "format": value,
	"minimum": value, "maximum": value, "exclusiveMinimum": value, "exclusiveMaximum": value, "multipleOf": value,
	"not": refused, "if": refused, "then": refused, "else": refused, "uniqueItems": refused, "nullable": refused,
	"contentMediaType": refused, "contentEncoding": refused, "contentSchema": refused,
	"contains": refused, "minContains": refused, "maxContains": refused, "propertyNames": refused,
	"dependencies": refused, "dependentRequired": refused, "dependentSchemas": refused,
	"unevaluatedItems": refused, "unevaluatedProperties": refused,
	"$dynamicRef": refused, "$dynamicAnchor": refused, "$recursiveRef": refused, "$recursiveAnchor": refused,
	"$vocabulary": refused,
}

// neutral are values with which a refused keyword changes nothing.
var neutral = map[string]string{"uniqueItems": "false", "nullable": "false", "minContains": "0",
	"$recursiveAnchor": "false"}

// deepest is how far schemas may be within each other.
const deepest = 64

// checker reads a schema, and writes what is left of it for the module.
type checker struct {
	root  *tree
	base  string // of the root's $id
	refs  map[string]*tree
	extra []member // definitions that references got

	inside []*tree // alternatives that the one at hand is within
	copied int     // bytes of what was written in place of references
}

// identify looks for identifiers of documents.
func (c *checker) identify() error {
	if c.root.members == nil {
		return nil
	}
	for _, key := range []string{"$id", "id"} {
		if v := c.root.get(key); v != nil && v.text() != "" {
			c.base = strings.TrimSuffix(v.text(), "#")
		}
	}
	return nil
}

// schema checks one schema, at a place in the document.
func (c *checker) schema(t *tree, at string, depth int) (*tree, error) {
	if depth > deepest {
		return nil, fmt.Errorf("schemas are more than %d deep%s", deepest, where(at))
	}
	switch t.kind {
	case isLiteral:
		if s := string(t.raw); s == "true" || s == "false" {
			return t, nil
		}
		return nil, fmt.Errorf("%s is no schema%s", short(t.raw), where(at))
	case isList:
		return nil, fmt.Errorf("a list is no schema%s", where(at))
	}
	out := &tree{kind: isObject}
	for _, m := range t.members {
		r, known := keywords[m.key]
		here := at + "/" + escape(m.key)
		switch {
		case strings.HasPrefix(m.key, "x-") && m.key != "x-guidance":
			continue
		case !known:
			return nil, fmt.Errorf("the keyword %s is not known%s", quote(m.key), where(at))
		case r == refused && neutral[m.key] != "" && string(m.value.raw) == neutral[m.key]:
			continue
		case r == refused:
			return nil, fmt.Errorf("the keyword %s is not supported%s", quote(m.key), where(at))
		case r == shelf: // what is referred to is taken from there
			continue
		case r == annotation:
			if (m.key == "$id" || m.key == "id") && at != "" && m.value.kind == isLiteral && t.refers() {
				return nil, fmt.Errorf("the keyword %s is supported only in the whole schema, or where nothing is "+
					"referred to%s", quote(m.key), where(at))
			}
			continue
		}
		if bound, more := exclusives[m.key]; more && m.value.isBool() {
			if string(m.value.raw) == "true" && t.get(bound) != nil {
				out.members = append(out.members, member{m.key, t.get(bound)})
			}
			continue
		}
		if e := exclusiveOf[m.key]; e != "" && t.get(e) != nil && string(t.get(e).raw) == "true" {
			continue
		}
		v, err := c.keyword(m, r, t, here, depth)
		if err != nil {
			return nil, err
		}
		if m.key == "format" && !slices.Contains(formats, v.text()) {
			if more := formatAs[v.text()].schema; len(more) > 0 {
				out.and(&tree{kind: isObject, members: more})
			}
			continue
		}
		if m.key == "allOf" && out.get("allOf") != nil {
			for _, e := range v.items {
				out.and(e)
			}
			continue
		}
		out.members = append(out.members, member{m.key, v})
	}
	return out, nil
}

// and adds a schema to those that must all hold.
func (t *tree) and(s *tree) {
	for i := range t.members {
		if m := &t.members[i]; m.key == "allOf" {
			m.value = &tree{kind: isList, items: append(slices.Clone(m.value.items), s)}
			return
		}
	}
	t.members = append(t.members, member{"allOf", &tree{kind: isList, items: []*tree{s}}})
}

// keyword checks a keyword's value.
func (c *checker) keyword(m member, r role, in *tree, at string, depth int) (*tree, error) {
	v := m.value
	switch {
	case m.key == "$ref":
		return c.ref(v, at)
	case m.key == "pattern" && v.text() != "":
		return literal(pattern(v.text())), nil
	case slices.Contains(counts, m.key):
		return whole(v), nil
	case r == value:
		return v, c.value(m, in, at)
	case r == one, r == oneOrMany && v.kind != isList:
		return c.schema(v, at, depth+1)
	case r == many, r == oneOrMany:
		if v.kind != isList {
			return nil, fmt.Errorf("no list of schemas%s", where(at))
		}
		out := &tree{kind: isList}
		for i, e := range v.items {
			if m.key == "oneOf" {
				if e = c.behind(e); e != v.items[i] {
					if c.copied += e.size(mostText - c.copied); c.copied >= mostText {
						return nil, fmt.Errorf("a schema of more than %d bytes, with what %s refers to in its place%s",
							mostText, quote(m.key), where(at))
					}
				}
			}
			if slices.Contains(c.inside, e) {
				return nil, fmt.Errorf("the keyword %s is not supported with schemas that are within themselves%s",
					quote(m.key), where(at))
			}
			c.inside = append(c.inside, e)
			s, err := c.schema(e, at+"/"+strconv.Itoa(i), depth+1)
			c.inside = c.inside[:len(c.inside)-1]
			if err != nil {
				return nil, err
			}
			out.items = append(out.items, s)
		}
		return out, nil
	}
	if v.kind != isObject {
		return nil, fmt.Errorf("no object of schemas%s", where(at))
	}
	out := &tree{kind: isObject}
	for _, p := range v.members {
		s, err := c.schema(p.value, at+"/"+escape(p.key), depth+1)
		if err != nil {
			return nil, err
		}
		key := p.key
		if m.key == "patternProperties" {
			key = pattern(key)
		}
		out.members = append(out.members, member{key, s})
	}
	return out, nil
}

// counts are keywords whose values are whole numbers, however they are written.
var counts = []string{"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"}

func whole(v *tree) *tree {
	if f, err := strconv.ParseFloat(string(v.raw), 64); err == nil && f == float64(int64(f)) && f >= 0 && f < 1<<53 {
		return &tree{raw: strconv.AppendInt(nil, int64(f), 10)}
	}
	return v
}

// value checks a keyword's value that has no schema in it.
func (c *checker) value(m member, in *tree, at string) error {
	if m.key == "format" && !followed(m.value.text(), in) {
		return fmt.Errorf("the keyword %s is not supported with %s%s", quote(m.key), short(m.value.raw), where(at))
	}
	return nil
}

// ref resolves a reference: the module reads those to places of the document by plain
// names.
func (c *checker) ref(v *tree, at string) (*tree, error) {
	ref := v.text()
	if v.kind != isLiteral || ref == "" {
		return nil, fmt.Errorf("no reference%s", where(at))
	}
	bad := func() error {
		return fmt.Errorf("the keyword %s refers to %s, which is not in the schema%s", quote("$ref"),
			short(v.raw), where(at))
	}
	place := strings.TrimPrefix(ref, c.base)
	if place == "" {
		place = "#"
	}
	fragment, ok := strings.CutPrefix(place, "#")
	if !ok {
		return nil, bad()
	}
	fragment, err := url.PathUnescape(fragment)
	if err != nil {
		return nil, bad()
	}
	if fragment != "" && fragment[0] != '/' {
		return nil, fmt.Errorf("the keyword %s is supported with places of the schema alone, not with %s%s",
			quote("$ref"), short(v.raw), where(at))
	}
	target, err := c.root.at(fragment)
	if err != nil {
		return nil, bad()
	}
	if fragment == "" {
		return literal("#"), nil
	}
	name := "@" + fragment
	if c.refs == nil {
		c.refs = map[string]*tree{}
	}
	if c.refs[name] == nil {
		c.refs[name] = target
		if len(c.refs) > mostRefs {
			return nil, fmt.Errorf("references to more than %d places", mostRefs)
		}
	}
	return literal("#/$defs/" + c.number(name)), nil
}

// behind is the schema that another only refers to: the module sees that alternatives
// exclude each other by what they are, not by reference.
func (c *checker) behind(t *tree) *tree {
	for range 8 {
		ref := ""
		for _, m := range t.members {
			switch {
			case m.key == "$ref":
				ref = m.value.text()
			case keywords[m.key] != annotation:
				return t
			}
		}
		fragment, ok := strings.CutPrefix(ref, "#")
		if !ok {
			return t
		}
		next, err := c.root.at(fragment)
		if err != nil || next.kind != isObject {
			return t
		}
		t = next
	}
	return t
}

// mostRefs bounds the places that are referred to.
const mostRefs = 4096

// number is a plain name of a place.
func (c *checker) number(name string) string {
	i := slices.IndexFunc(c.extra, func(m member) bool { return m.key == name })
	if i < 0 {
		i = len(c.extra)
		c.extra = append(c.extra, member{name, nil})
	}
	return strconv.Itoa(i)
}

// finish adds the places that are referred to, and what is between parts.
func (c *checker) finish(out *tree, w Whitespace) (*tree, error) {
	if out.kind != isObject {
		if string(out.raw) == "false" {
			return nil, errors.New("nothing is valid by this schema")
		}
		out = &tree{kind: isObject}
	}
	defs := &tree{kind: isObject}
	for i := 0; i < len(c.extra); i++ { // more come up on the way
		name := c.extra[i].key
		s, err := c.schema(c.refs[name], name[1:], 0)
		if err != nil {
			return nil, err
		}
		defs.members = append(defs.members, member{strconv.Itoa(i), s})
	}
	if len(defs.members) > 0 {
		out.members = append(out.members, member{"$defs", defs})
	}
	options := &tree{kind: isObject}
	switch {
	case w.Pattern != "":
		options.members = append(options.members, member{"whitespace_pattern", literal(w.Pattern)})
	case w.None:
		options.members = append(options.members, member{"whitespace_flexible", &tree{raw: []byte("false")}},
			member{"item_separator", literal(", ")}, member{"key_separator", literal(": ")})
	default:
		options.members = append(options.members, member{"whitespace_pattern", literal(usualWhitespace)})
	}
	out.members = append(out.members, member{"x-guidance", options})
	return out, nil
}

func where(at string) string {
	if at == "" {
		return ""
	}
	return " (at #" + at + ")"
}

// A JSON pointer's parts (RFC 6901).
var escaped, unescaped = strings.NewReplacer("~", "~0", "/", "~1"), strings.NewReplacer("~1", "/", "~0", "~")

func escape(key string) string { return escaped.Replace(key) }

func quote(s string) string { return string(literal(s).raw) }

func short(raw []byte) string {
	if len(raw) > 60 {
		return strings.ToValidUTF8(string(raw[:60]), "") + "…"
	}
	return string(raw)
}

func literal(s string) *tree {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // text always can
	return &tree{raw: bytes.TrimSpace(b.Bytes())}
}

// sayings are what the module says of keywords, by words of it.
var sayings = []struct{ words, keyword string }{
	{"oneOf constraints", "oneOf"}, {"patternProperty regexes", "patternProperties"},
	{"min/maxProperties", "maxProperties"},
	{"min=", "minimum"}, {"'minLength'", "minLength"}, {"'maxLength'", "maxLength"}, {"'minItems'", "minItems"},
	{"'maxItems'", "maxItems"},
	{"'minProperties'", "minProperties"}, {"'maxProperties'", "maxProperties"}, {"'multipleOf'", "multipleOf"},
	{"regex parse error", "pattern"}, {"circular references", "$ref"}, {"intersection stack level", "allOf"},
}

// said names the keyword that an error of the module is about.
func said(err error) error {
	text := strings.Join(strings.Fields(err.Error()), " ")
	for _, s := range sayings {
		if !strings.Contains(text, s.words) {
			continue
		}
		if s.keyword == "oneOf" {
			text = "it is supported where its schemas exclude each other by type, or by a property's const or enum"
		}
		return fmt.Errorf("the keyword %s is not supported as it is here: %s", quote(s.keyword), text)
	}
	return err
}

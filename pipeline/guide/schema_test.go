package guide

import (
	"fmt"
	"strings"
	"testing"
)

// A keyword that cannot be followed is named, with its place.
func TestRefusedKeywords(t *testing.T) {
	g, _ := newGuides(t, Options{})
	deep := strings.Repeat(`{"items":`, 100) + "{}" + strings.Repeat("}", 100)
	for _, c := range []struct{ schema, want string }{
		{`{"type":"array","uniqueItems":true}`, `the keyword "uniqueItems" is not supported`},
		{`{"properties":{"a":{"not":{}}}}`, `the keyword "not" is not supported (at #/properties/a)`},
		{`{"items":[{"if":{}}]}`, `the keyword "if" is not supported (at #/items/0)`},
		{`{"colour":"red"}`, `the keyword "colour" is not known`},
		{`{"type":"string","format":"iri"}`, `the keyword "format" is not supported with "iri" (at #/format)`},
		{`{"$ref":"other.json"}`, `the keyword "$ref" refers to "other.json", which is not in the schema`},
		{`{"$ref":"#/$defs/x"}`, `the keyword "$ref" refers to "#/$defs/x", which is not in the schema`},
		{`{"$ref":"#x","$defs":{"x":{"$anchor":"x"}}}`,
			`the keyword "$ref" is supported with places of the schema alone`},
		{`{"$defs":{"a":{"$id":"b","items":{"$ref":"#/$defs/a"}}},"$ref":"#/$defs/a"}`,
			`the keyword "$id" is supported only in the whole schema`},
		{`{"type":["string","integer"],"format":"int64"}`, `the keyword "format" is not supported with "int64"`},
		{`{"type":"number","format":"int32"}`, `the keyword "format" is not supported with "int32"`},
		{`{"type":"integer","format":"uint64"}`, `the keyword "format" is not supported with "uint64"`},
		{`{"format":"double"}`, `the keyword "format" is not supported with "double"`},
		{`{"properties":{"a":{"oneOf":[{"type":"null"},{"$ref":"#"}]}},"type":"object"}`,
			`the keyword "oneOf" is not supported with schemas that are within themselves (at #/properties/a/oneOf`},
		{`{"$defs":{"a/b":{"contains":{}}},"$ref":"#/$defs/a~1b"}`,
			`the keyword "contains" is not supported (at #/$defs/a~1b)`},
		{`{"type":"string","contentEncoding":"base64"}`, `the keyword "contentEncoding" is not supported`},
		{`{"oneOf":[{"type":"integer"},{"minimum":2}]}`, `the keyword "oneOf" is not supported as it is here`},
		{`{"type":"object","properties":{"a":{}},"maxProperties":1}`,
			`the keyword "maxProperties" is not supported as it is here`},
		{`{"type":"string","pattern":"("}`, `the keyword "pattern" is not supported as it is here`},
		{`{"type":"string","pattern":"a(?=b)"}`, `the keyword "pattern" is not supported as it is here`},
		{`{"x-guidance":{"lenient":true},"not":{}}`, `the keyword "x-guidance" is not known`},
		{`{"type":"integer","minimum":5,"maximum":4}`, `nsatisfiable`},
		{`false`, `nothing is valid by this schema`},
		{`{"a":1,"a":2}`, `"a" is there twice`},
		{`[]`, `a list is no schema`},
		{`{"items":3}`, `3 is no schema (at #/items)`},
		{`{"anyOf":{}}`, `no list of schemas (at #/anyOf)`},
		{`{"properties":[]}`, `no object of schemas (at #/properties)`},
		{`{`, `no valid JSON`},
		{`{} {}`, `more than one JSON value`},
		{deep, `schemas are more than 64 deep`},
		{strings.Repeat(" ", mostText) + "{}", `is longer than`},
	} {
		s, err := NewSchema([]byte(c.schema), Whitespace{})
		if err == nil {
			err = g.Check(s)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.80s: %v, want %s", c.schema, err, c.want)
		}
	}
}

// What changes nothing is taken.
func TestTakenKeywords(t *testing.T) {
	g, tok := newGuides(t, Options{Boxes: 1})
	for _, c := range []struct{ schema, valid, invalid string }{
		{`{"type":"array","uniqueItems":false,"items":{"type":"null"},"deprecated":true,"x-order":["b"],"title":"T"}`,
			`[null]`, `[1]`},
		{`{"$id":"http://x/y","$ref":"http://x/y#/definitions/a%20b","definitions":{"a b":{"const":7},"unused":{"not":{}}}}`, `7`, `8`},
		{`{"type":"object","properties":{"description":{"type":"integer","description":"of a description"}}}`,
			`{"description":1}`, `{"description":"a"}`},
		{`{"enum":[{"not":1},"x"]}`, `{"not":1}`, `{"not":2}`},
		{`{"type":"string","format":"date","pattern":"^2"}`, `"2024-02-29"`, `"2023-02-29"`},
		{`{"type":"string","format":"date-time","allOf":[{"pattern":"Z$"}]}`, `"1999-12-31T23:59:59.25Z"`,
			`"1999-12-31T23:59:60Z"`},
		{`{"type":"string","pattern":"^[\\s\\S]\\S\\s.$"}`, `"a\"\tb"`, `"ab\u00a0b"`},
		{`{"oneOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/b"}],"$defs":{"a":{"properties":{"k":{"const":"a"}},"required":["k"],"type":"object"},"b":{"properties":{"k":{"const":"b"},"n":{"type":"integer"}},"required":["k","n"],"type":"object"}}}`,
			`{"k":"b","n":1}`, `{"k":"b"}`},
		{`{"type":"string","maxLength":2.0}`, `"ab"`, `"abc"`},
		{`true`, `{"a":[1,{}]}`, `{"a":[1,{]}`},
		{`{"type":"integer","minimum":1,"exclusiveMinimum":true}`, `2`, `1`},
		{`{"type":"integer","exclusiveMaximum":false,"maximum":7}`, `7`, `8`},
		{`{"type":"array","items":{"$id":"#/items","type":"null","markdownDescription":"*x*","tsType":"X"}}`, `[null]`, `[1]`},
		{`{"type":"integer","format":"int32"}`, `-2147483648`, `2147483648`},
		{`{"type":["integer","null"],"format":"uint8","minimum":3}`, `255`, `256`},
		{`{"type":"integer","format":"int64"}`, `9223372036854775807`, `9223372036854775808`},
		{`{"type":"integer","format":"int64"}`, `-9223372036854774784`, `-9223372036854775809`},
		{`{"type":"number","format":"double"}`, `1.5e3`, `"1"`},
		{`{"type":"string","format":"byte"}`, `"aGk="`, `"aGk"`},
		{`{"type":"string","format":"password"}`, `"x y"`, `1`},
		{`{"type":"string","format":"uri-reference"}`, `"../a/b%20c?d=e#f"`, `"a b"`},
		{`{"type":"string","format":"uri-reference"}`, `"//u@h:80/p"`, `"1:b"`},
		{`{"type":"string","format":"uri-reference"}`, `"mailto:a@b.c"`, `"http://[x/"`},
		{`{"type":"string","format":"json-pointer"}`, `"/a~1b//\"~0"`, `"/a~2"`},
		{`{"type":"string","format":"relative-json-pointer"}`, `"10/a"`, `"01/a"`},
	} {
		s, err := NewSchema([]byte(c.schema), Whitespace{})
		if err == nil {
			err = g.Check(s)
		}
		if err != nil {
			t.Errorf("%s: %v", c.schema, err)
			continue
		}
		if err := follows(g.benches[0], tok, s, c.valid); err != nil {
			t.Errorf("%s: %s cannot be written: %v", c.schema, c.valid, err)
		}
		if err := follows(g.benches[0], tok, s, c.invalid); err == nil {
			t.Errorf("%s: %s can be written", c.schema, c.invalid)
		}
	}
}

// What is between the parts of a text is as it was asked for.
func TestWhitespace(t *testing.T) {
	g, tok := newGuides(t, Options{Boxes: 1})
	const schema = `{"type":"array","items":{"const":1}}`
	for _, c := range []struct {
		w    Whitespace
		text string
		ok   bool
	}{
		{Whitespace{}, "[1, 1]", true},
		{Whitespace{}, "[\n    1,\n    1\n]", true},
		{Whitespace{}, "[\n\t1\n]", true},
		{Whitespace{}, "[1]", true},
		{Whitespace{}, "[1,\n\n1]", false},
		{Whitespace{}, "[" + strings.Repeat(" ", 30) + "1]", false},
		{Whitespace{None: true}, "[1, 1]", true},
		{Whitespace{None: true}, "[1,1]", false},
		{Whitespace{Pattern: `\t`}, "[\t1,1]", true},
		{Whitespace{Pattern: `\t`}, "[ 1,1]", false},
	} {
		s, err := NewSchema([]byte(schema), c.w)
		if err == nil {
			err = g.Check(s)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := follows(g.benches[0], tok, s, c.text); (err == nil) != c.ok {
			t.Errorf("%+v: %q: %v", c.w, c.text, err)
		}
	}
}

// FuzzSchema: no schema makes its reader panic, and what it writes it reads again.
func FuzzSchema(f *testing.F) {
	for _, s := range []string{`{"type":"object","properties":{"a":{"$ref":"#/$defs/x~1y"}},"$defs":{"x/y":{"enum":[1,null]}}}`, `{"oneOf":[{"$ref":"#"}],"format":"date","pattern":"[\\s\\S]\\S."}`, `true`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, schema []byte) {
		s, err := NewSchema(schema, Whitespace{})
		if err != nil {
			return
		}
		if _, err := parseTree([]byte(s.Text)); err != nil {
			t.Errorf("%q became %q: %v", schema, s.Text, err)
		}
	})
}

// What oneOf refers to is written in its place, and what a schema comes to with that is bounded.
func TestSchemaOfManyPlaces(t *testing.T) {
	halves := func(n int, last string) string { // 2^n of the last
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"%d":{"oneOf":[{"$ref":"#/$defs/%d"},{"$ref":"#/$defs/%d"}]},`, i, i+1, i+1)
		}
		return fmt.Sprintf(`{"oneOf":[{"$ref":"#/$defs/0"}],"$defs":{%s"%d":%s}}`, b.String(), n, last)
	}
	long := `{"const":"` + strings.Repeat("x", mostText/16) + `"}`
	for _, c := range []struct {
		schema string
		fits   bool
	}{
		{halves(4, `{"type":"null"}`), true}, {halves(40, `{"type":"null"}`), false},
		{halves(2, long), true}, {halves(6, long), false},
	} {
		s, err := NewSchema([]byte(c.schema), Whitespace{})
		if c.fits != (err == nil) || err != nil && !strings.Contains(err.Error(), "in its place") {
			t.Errorf("%d bytes: %d bytes, %v", len(c.schema), len(s.Text), err)
		}
	}
}

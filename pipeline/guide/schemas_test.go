package guide

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// validator is another program's reading of a schema.
func validator(t testing.TB, schema []byte) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Whatever is drawn of the tokens that may come next, a text that ends is valid.
func TestSchemas(t *testing.T) {
	g, tok := newGuides(t, Options{})
	files, err := filepath.Glob("testdata/schemas/*.json")
	if err != nil || len(files) != 10 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			schema, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			v := validator(t, schema)
			s, err := NewSchema(schema, Whitespace{})
			if err == nil {
				err = g.Check(s)
			}
			if err != nil {
				t.Fatal(err)
			}
			rng := rand.New(rand.NewPCG(1, 2))
			ended := 0
			for range 20 {
				text, done := sampleText(t, g, tok, s, rng, 400)
				if !done {
					continue
				}
				ended++
				value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
				if err == nil {
					err = v.Validate(value)
				}
				if err != nil {
					t.Errorf("%q: %v", text, err)
				}
			}
			if ended < 10 {
				t.Errorf("only %d of 20 texts end within 400 tokens", ended)
			}
		})
	}
}

package guide

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// odd is a vocabulary by hand: texts, of which some are added tokens.
type odd struct {
	texts []string
	added map[int32]string
}

func (o odd) VocabSize() int             { return len(o.texts) }
func (o odd) Bytes(id int32) string      { return o.texts[id] }
func (o odd) AddedIDs() map[int32]string { return o.added }

// Whatever a vocabulary has, a text is made of its plain tokens alone and valid, or there is
// an error that says what is missing.
func TestOddVocabularies(t *testing.T) {
	var bytes []string
	for b := range 256 {
		bytes = append(bytes, string([]byte{byte(b)}))
	}
	with := func(texts ...string) odd {
		o := odd{texts: slices.Concat(bytes, texts, []string{"<end>"}), added: map[int32]string{}}
		o.added[int32(len(o.texts)-1)] = "<end>"
		return o
	}
	json1 := with(`{"a":1}`, `"`, `{`, "}", ":", "</think>")
	for id := 256; id < 262; id++ {
		json1.added[int32(id)] = json1.texts[id]
	}
	long := with(strings.Repeat(" ", longest), strings.Repeat("ab", 600), strings.Repeat("x", 70_000),
		strings.Repeat("y", longest))
	long.added[259] = long.texts[259]
	few := odd{texts: []string{"x", "y", "<end>"}, added: map[int32]string{2: "<end>"}}
	for name, c := range map[string]struct {
		o    odd
		want string // of the error of a guide; "": it can be followed
	}{
		"bytes":              {with(), ""},
		"the same again":     {with(`"`, `"`, "a", "a", "{", `{"`, `{"`), ""},
		"empty ones":         {with("", "", "a", ""), ""},
		"added look like it": {json1, ""},
		"not text": {with("\xff", "\xfe\xff", "\xc3", "\xa9\"", "\xf0\x9f", "a\xff", "\xff[5]",
			"\xff<x>"), ""},
		"long":        {long, ""},
		"whole texts": {with(`{"k":12}`, `{"k":`, `"k"`, `:-1}`, "\n\n\n\n", "  \t "), ""},
		"no JSON":     {few, "no text of the grammar goes on from here"},
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{Boxes: 1, Ends: []int32{int32(len(c.o.texts) - 1)}}
			if dir, err := os.UserCacheDir(); err == nil {
				o.Cache = filepath.Join(dir, "glmbatch", "guide")
			}
			g, err := New(context.Background(), c.o, o)
			if err != nil {
				t.Fatal(err)
			}
			defer g.Close()
			s := schemaOf(t, `{"type":"object","properties":{"k":{"type":"integer"},"s":{"type":"string","maxLength":6}},`+
				`"required":["k","s"],"additionalProperties":false}`)
			err = g.Check(s)
			rng := seeded(9)
			for range 5 {
				m := g.Start(s, false)
				set := make([]uint64, (g.vocab.tokens+63)/64)
				var text strings.Builder
				for text.Len() < 1<<20 {
					clear(set)
					if _, err = m.Mask(0, set); err != nil {
						break
					}
					id := drawFrom(set, rng)
					for range 3 { // end soon
						if other := drawFrom(set, rng); len(c.o.texts[other]) > 0 && strings.ContainsAny(c.o.texts[other], `"}:`) {
							id = other
						}
					}
					if id == o.Ends[0] {
						break
					}
					if _, ok := c.o.added[id]; ok || c.o.texts[id] == "" {
						t.Fatalf("behind %q token %d %q may come", text.String(), id, c.o.texts[id])
					}
					text.WriteString(c.o.texts[id])
					m.Add(id)
				}
				m.Close()
				if (err == nil) != (c.want == "") || err != nil && !strings.Contains(fmt.Sprint(err), c.want) {
					t.Fatalf("%q: %v, want %q", text.String(), err, c.want)
				}
				if err == nil && !json.Valid([]byte(text.String())) {
					t.Errorf("%q", text.String())
				}
			}
		})
	}
}

// Thousands of choices are followed.
func TestManyChoices(t *testing.T) {
	g, tok := newGuides(t, Options{Boxes: 1})
	var list []string
	for i := range mostChoices {
		list = append(list, fmt.Sprintf("no. %d", i*7))
	}
	s, err := NewChoice(list)
	if err == nil {
		err = g.Check(s)
	}
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		if text, ended := sampleText(t, g, tok, s, seeded(uint64(i)), 40); !ended || !slices.Contains(list, text) {
			t.Errorf("%q, %t", text, ended)
		}
	}
}

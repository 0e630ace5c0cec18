package guide

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A mask has the tokens that the grammar takes, asked of each by itself: where a state of the
// lexer is new, where it comes again, and where what was known of it was forgotten.
func TestMasksAreOfTokens(t *testing.T) {
	g, tok := newGuides(t, Options{Boxes: 1})
	files, err := filepath.Glob("testdata/schemas/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	specs := some(t)
	for _, f := range files {
		schema, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		specs = append(specs, schemaOf(t, string(schema)))
	}
	for _, text := range []string{
		`{"type":"string","maxLength":12}`,
		`{"type":"string","minLength":3,"maxLength":5,"pattern":"^[a-z ]*$"}`,
		`{"type":"number"}`,
		`{"anyOf":[{"type":"string","maxLength":4},{"type":"string","pattern":"^é+$"},{"const":"a\"b\\c\u0001"}]}`,
	} {
		specs = append(specs, schemaOf(t, text))
	}
	for _, text := range []string{
		`start: /[^b]{0,7}/ "bb"`,
		"start: \"<\" x \">\"\nx: /.{1,6}/ | x x",
		"start: A B*\nA: \"a\"+\nB: /[ab]{2,3}/",
	} {
		specs = append(specs, Spec{Lark, text})
	}
	added := tok.AddedIDs()
	w, rng := g.benches[0], seeded(7)
	for i, s := range specs {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			for range 3 {
				m := g.Start(s, false)
				var last []int32
				for step := range 25 {
					if err := m.next(w, last); err != nil {
						t.Fatal(err)
					}
					for id := int32(step % 5); id < int32(g.vocab.tokens); id += 5 {
						if _, ok := added[id]; ok || tok.Bytes(id) == "" || slices.Contains(g.vocab.ends, id) {
							continue
						}
						n, err := w.box.follow(m.handle, []int32{id})
						if err != nil {
							t.Fatal(err)
						}
						if have := m.sets[0][id/64]>>(id%64)&1 == 1; have != (n == 1) {
							t.Fatalf("behind %v the mask says %t of token %d %q", m.tokens, have, id, tok.Bytes(id))
						}
					}
					id := drawFrom(m.sets[0], rng)
					if slices.Contains(g.vocab.ends, id) {
						break
					}
					last = []int32{id}
				}
				m.drop(w)
			}
		})
	}
}

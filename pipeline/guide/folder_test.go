//go:build linux

package guide

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"glmbatch/pipeline/tokenizer"
)

// found is what a folder's schemas came to.
type found struct {
	schemas, supported, unread int
	refused                    map[string]int
	valid, taken, invalid      int // of instances that came with schemas
	drawn, ended               int // texts
	first, next                []time.Duration
	wrong                      []string
	g                          *Guides
	tok                        *tokenizer.Tokenizer
	rng                        *rand.Rand
	closing                    []int32 // tokens that end what was begun
}

// TestSchemaFolder follows the schemas of a folder, GLMBATCH_SCHEMAS, such as JSONSchemaBench's
// or MaskBench's data: a schema a file, or an object with schema and tests. It fails where a
// text that was drawn, or an instance that is said to be invalid, is wrongly taken. With
// GLMBATCH_TOKENIZER times are of that vocabulary.
func TestSchemaFolder(t *testing.T) {
	folder := os.Getenv("GLMBATCH_SCHEMAS")
	if folder == "" {
		t.Skip("no GLMBATCH_SCHEMAS")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	f := &found{refused: map[string]int{}, rng: seeded(11)}
	if path := os.Getenv("GLMBATCH_TOKENIZER"); path != "" {
		f.g, f.tok = guidesOf(t, path)
	} else {
		f.g, f.tok = newGuides(t, Options{Boxes: 1})
	}
	for _, c := range []string{`"`, "}", "]", "0", "e", "l", "n", "r", "u", "t", "f"} {
		f.closing = append(f.closing, f.tok.Encode(nil, c)...)
	}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".json") {
			var data []byte
			if data, err = os.ReadFile(path); err == nil {
				f.file(path, data)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	f.print()
	for _, w := range f.wrong {
		t.Error(w)
	}
}

// soundly is a schema as the validator has it; nil: it has not.
func soundly(schema []byte) *jsonschema.Schema {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if o, ok := doc.(map[string]any); ok && o["$schema"] == nil {
		c.DefaultDraft(jsonschema.Draft7)
	}
	if c.AddResource("mem:///schema.json", doc) != nil {
		return nil
	}
	s, err := c.Compile("mem:///schema.json")
	if err != nil {
		return nil
	}
	return s
}

var keywordOf = regexp.MustCompile(`the keyword ("[^"]*")`)

func (f *found) file(path string, data []byte) {
	var bundle struct {
		Schema json.RawMessage
		Tests  []struct {
			Valid bool
			Data  json.RawMessage
		}
	}
	schema := data
	if json.Unmarshal(data, &bundle) == nil && len(bundle.Schema) > 0 && len(bundle.Tests) > 0 {
		schema = bundle.Schema
	}
	f.schemas++
	sound := soundly(schema)
	if sound == nil {
		f.unread++
		return
	}
	spec, err := NewSchema(schema, Whitespace{})
	w := f.g.benches[0]
	if err == nil {
		err = f.g.Check(spec)
	}
	if err != nil {
		why := "others: " + strings.Fields(err.Error())[0]
		if m := keywordOf.FindStringSubmatch(err.Error()); m != nil {
			why = m[1]
		} else if testing.Verbose() {
			fmt.Printf("%s: %.150v\n", filepath.Base(path), err)
		}
		f.refused[why]++
		return
	}
	f.supported++
	start := threadTime()
	if _, err = w.grammar(spec); err == nil {
		m := f.g.Start(spec, false)
		err = m.next(w, nil)
		m.drop(w)
	}
	f.first = append(f.first, threadTime()-start)
	for _, c := range bundle.Tests {
		ok := err == nil && f.takes(w, spec, c.Data)
		switch {
		case c.Valid:
			f.valid++
			if ok {
				f.taken++
			}
		case ok:
			f.wrong = append(f.wrong, fmt.Sprintf("%s: %.200s is taken", path, c.Data))
			fallthrough
		default:
			f.invalid++
		}
	}
	for range 3 {
		text, ended := f.draw(w, spec)
		f.drawn++
		if !ended {
			continue
		}
		f.ended++
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err == nil {
			err = sound.Validate(value)
		}
		if err != nil {
			f.wrong = append(f.wrong, fmt.Sprintf("%s: %.300q: %.500v", path, text, err))
		}
	}
}

// takes reports whether the grammar takes a text, and its end.
func (f *found) takes(w *bench, s Spec, data []byte) bool {
	m := f.g.Start(s, false)
	defer m.drop(w)
	for _, id := range append(f.tok.Encode(nil, string(data)), f.g.vocab.ends[0]) {
		if f.timed(m, w) != nil || !has(m.sets[0], id) {
			return false
		}
		m.added = []int32{id}
	}
	return true
}

// timed works out the next set.
func (f *found) timed(m *Matcher, w *bench) error {
	start, added := threadTime(), m.added
	m.added = nil
	err := m.next(w, added)
	f.next = append(f.next, threadTime()-start)
	return err
}

// draw draws a text that ends where it can, and closes what it began most of the time.
func (f *found) draw(w *bench, s Spec) (text string, ended bool) {
	m := f.g.Start(s, false)
	defer m.drop(w)
	var ids []int32
	for len(ids) < 250 {
		if err := f.timed(m, w); err != nil {
			return "", false
		}
		if slices.ContainsFunc(f.g.vocab.ends, func(id int32) bool { return has(m.sets[0], id) }) {
			return f.tok.Decode(ids, false), true
		}
		var near []int32
		for _, id := range f.closing {
			if has(m.sets[0], id) {
				near = append(near, id)
			}
		}
		id := int32(0)
		if len(near) > 0 && f.rng.IntN(8) > 0 {
			id = near[f.rng.IntN(len(near))]
		} else {
			id = drawFrom(m.sets[0], f.rng)
		}
		ids = append(ids, id)
		m.added = []int32{id}
	}
	return "", false
}

func (f *found) print() {
	fmt.Printf("%d schemas, %d that the validator does not read; %d followed (%.1f %%)\n", f.schemas, f.unread,
		f.supported, 100*float64(f.supported)/float64(f.schemas-f.unread))
	most := func(a, b string) int { return f.refused[b] - f.refused[a] }
	for _, k := range slices.SortedFunc(maps.Keys(f.refused), most) {
		fmt.Printf("  %4d refused for %s\n", f.refused[k], k)
	}
	fmt.Printf("%d of %d valid instances taken, %d invalid ones; %d texts drawn, %d ended; %d wrong\n", f.taken,
		f.valid, f.invalid, f.drawn, f.ended, len(f.wrong))
	for name, d := range map[string][]time.Duration{"first mask": f.first, "mask": f.next} {
		slices.Sort(d)
		if len(d) == 0 {
			continue
		}
		fmt.Printf("%s, us of %d:", name, len(d))
		for _, q := range []float64{.25, .5, .75, .9, .95, .99, .999, 1} {
			fmt.Printf(" p%g %.0f", 100*q, float64(d[int(q*float64(len(d)-1))].Nanoseconds())/1e3)
		}
		fmt.Println()
	}
}

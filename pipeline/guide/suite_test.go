package guide

import (
	"archive/zip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"glmbatch/pipeline/tokenizer"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// suiteGroup is a schema of JSON-Schema-Test-Suite, with instances.
type suiteGroup struct {
	Description string
	Schema      json.RawMessage
	Tests       []struct {
		Description string
		Data        json.RawMessage
		Valid       bool
	}
}

// follows reports whether a text is one of a spec; nil: it is.
func follows(w *bench, tok *tokenizer.Tokenizer, s Spec, text string) error {
	done := make(chan error)
	w.jobs <- func() {
		done <- func() error {
			g, err := w.grammar(s)
			if err != nil {
				return err
			}
			m, err := w.box.do("matcher", uint64(g))
			if err != nil {
				return err
			}
			defer w.box.call("drop_matcher", uint64(m))
			for _, id := range tok.Encode(nil, text) {
				if _, err := w.box.do("accept", uint64(m), uint64(id)); err != nil {
					return err
				}
			}
			complete, err := w.box.do("complete", uint64(m))
			if err == nil && complete != 1 {
				err = errors.New("the text is not complete")
			}
			return err
		}()
	}
	return <-done
}

// No instance of the JSON Schema Test Suite that is invalid can be written, and a schema
// that is refused is refused by the name of a keyword. How many are refused is golden.
func TestSuite(t *testing.T) {
	g, tok := newGuides(t, Options{Boxes: 1})
	z, err := zip.OpenReader("testdata/json-schema-test-suite.zip")
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	type tally struct{ schemas, followed, valid, written, invalid int }
	drafts := map[string]*tally{}
	refusedBy := map[string]int{}
	for _, f := range z.File {
		if !strings.HasSuffix(f.Name, ".json") {
			continue
		}
		draft, _, _ := strings.Cut(f.Name, "/")
		n := drafts[draft]
		if n == nil {
			n = &tally{}
			drafts[draft] = n
		}
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		var groups []suiteGroup
		if err := json.Unmarshal(data, &groups); err != nil {
			t.Fatal(f.Name, err)
		}
		for _, c := range groups {
			n.schemas++
			s, err := NewSchema(c.Schema, Whitespace{})
			if err == nil {
				err = g.Check(s)
			}
			if err != nil {
				name := namedBy(err)
				if name == "" {
					t.Errorf("%s: %s: refused without a keyword's name: %v", f.Name, c.Description, err)
				}
				refusedBy[name]++
				continue
			}
			n.followed++
			for _, x := range c.Tests {
				instance, err := parseTree(x.Data)
				if err != nil {
					t.Fatal(err)
				}
				err = follows(g.benches[0], tok, s, string(instance.append(nil)))
				switch {
				case x.Valid && err == nil:
					n.written++
					fallthrough
				case x.Valid:
					n.valid++
				default:
					n.invalid++
					if err == nil {
						t.Errorf("%s: %s: %s: %s can be written", f.Name, c.Description, x.Description, x.Data)
					}
				}
			}
		}
	}
	var b strings.Builder
	for _, draft := range sorted(drafts) {
		n := drafts[draft]
		fmt.Fprintf(&b,
			"%s: %d of %d schemas followed; %d of %d valid instances can be written as they are, 0 of %d invalid ones\n",
			draft, n.followed, n.schemas, n.written, n.valid, n.invalid)
	}
	for _, name := range sorted(refusedBy) {
		fmt.Fprintf(&b, "refused by %s: %d\n", name, refusedBy[name])
	}
	golden := path.Join("testdata", "suite.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, _ := os.ReadFile(golden)
	if d := cmp.Diff(string(want), b.String()); d != "" {
		t.Errorf("testdata/suite.txt: %s", d)
	}
}

func sorted[T any](m map[string]T) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// namedBy is the keyword that an error is about; "": none is named. What nothing is valid
// by is refused for that.
func namedBy(err error) string {
	text := err.Error()
	if strings.Contains(text, "nsatisfiable") || strings.Contains(text, "nothing is valid") {
		return "(nothing is valid)"
	}
	if i := strings.Index(text, `the keyword "`); i >= 0 {
		name, _, _ := strings.Cut(text[i+len(`the keyword "`):], `"`)
		if keywords[name] == refused {
			if _, known := keywords[name]; !known {
				return "(unknown keywords)"
			}
		}
		return name
	}
	return ""
}

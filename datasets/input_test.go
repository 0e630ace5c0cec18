package datasets

import (
	"bytes"
	"encoding/json"
	"fmt"
	"glmbatch/golden"
	"io"
	"path/filepath"
	"strings"
	"testing"
)

// fixtures are files by other writers; interop/fixtures.py makes them, but for
// spark_v2, which is Spark 4.3.0 itself, of interop/conformance.py.
var fixtures = []string{"pyarrow", "pandas", "polars", "duckdb", "spark", "spark_v2"}

func openFixture(t *testing.T, name string) *Input {
	t.Helper()
	in, err := Open([]string{filepath.Join("testdata", name+".parquet")})
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func readAll(t *testing.T, r *Reader) []Record {
	t.Helper()
	defer r.Close()
	var all []Record
	for {
		recs, err := r.Read()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, recs...)
	}
}

// TestFields shows every column of every writer as this package sees it.
func TestFields(t *testing.T) {
	for _, name := range fixtures {
		t.Run(name, func(t *testing.T) {
			in := openFixture(t, name)
			recs := readAll(t, in.Reader(0, in.Rows))
			var b strings.Builder
			for i := range in.root.fields {
				f, _ := in.Lookup(in.root.child(i).name)
				fmt.Fprintf(&b, "%s: %s (shape %d)\n", f.Name, f.Type(), f.Shape)
				for _, r := range recs {
					text, ok, err := f.JSON(nil, r)
					switch {
					case err != nil:
						fmt.Fprintf(&b, "\terror: %v\n", err)
					case !ok:
						b.WriteString("\tnull\n")
					default:
						fmt.Fprintf(&b, "\t%s\n", text)
					}
				}
			}
			golden.Check(t, name+".txt", b.String())
		})
	}
}

func ptr[T any](v T) *T { return &v }

// TestPassThrough writes every fixture out with our columns and compares the
// input's columns value by value, levels and all.
func TestPassThrough(t *testing.T) {
	for _, name := range fixtures {
		t.Run(name, func(t *testing.T) {
			in := openFixture(t, name)
			recs := readAll(t, in.Reader(0, in.Rows))
			out, err := NewOutput(in, Naming{}, Result{}, TokenIDs{}, Logprobs{})
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "part-00000.parquet")
			p, err := out.Create(path, map[string]string{"glmbatch.test": "1"})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range recs {
				res := Result{Response: ptr("r"), FinishReason: "stop", RowIndex: r.Index, RunID: "x"}
				if r.Index == 1 {
					res = Result{FinishReason: "error", ErrorCode: ptr("null_prompt"), Error: ptr("no prompt"),
						RowIndex: 1, RunID: "x"}
				}
				if err := p.Write(r, res, TokenIDs{[]int32{1, 2}}, Logprobs{[]TokenLogprob{{"a", 1, -1, nil}},
					[][]TokenLogprob{{{"a", 1, -1, ptr(int32(1))}, {"b", 2, -3, ptr(int32(2))}}, {}}}); err != nil {
					t.Fatal(err)
				}
			}
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
			back, err := Open([]string{path})
			if err != nil {
				t.Fatal(err)
			}
			got := readAll(t, back.Reader(0, back.Rows))
			if len(got) != len(recs) {
				t.Fatalf("%d rows, want %d", len(got), len(recs))
			}
			for i := range in.root.fields {
				want, have := in.root.child(i), back.root.child(i)
				if want.name != have.name || signature(want) != signature(have) || want.rep != have.rep {
					t.Errorf("column %s is %s (%d), want %s (%d)", have.name, signature(have), have.rep,
						signature(want), want.rep)
				}
			}
			for i := range recs {
				for k, leaf := range in.root.leafNodes() {
					w, g := recs[i].cells(leaf), got[i].cells(back.root.leafNodes()[k])
					for w.ok && g.ok && w.rep == g.rep && w.def == g.def && bytes.Equal(w.value, g.value) {
						w.next()
						g.next()
					}
					if w.ok || g.ok {
						t.Errorf("row %d, column %d: %+v, want %+v", i, k, g, w)
					}
				}
			}
		})
	}
}

// A map's keys of another type become JSON strings, whatever is in them.
func TestMapKeysAreStrings(t *testing.T) {
	type key struct {
		Name string `parquet:"name"`
	}
	type row struct {
		M map[key]int64 `parquet:"m"`
	}
	path := filepath.Join(t.TempDir(), "m.parquet")
	w, err := Create[row](path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write([]row{{map[key]int64{{"a\x7f\"\u200b"}: 1}}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	in, err := Open([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	f, _ := in.Lookup("m")
	text, ok, err := f.JSON(nil, readAll(t, in.Reader(0, 1))[0])
	var got map[string]int64
	if err != nil || !ok || json.Unmarshal(text, &got) != nil || got["{\"name\":\"a\x7f\\\"\u200b\"}"] != 1 {
		t.Errorf("%s, %v, %v", text, ok, err)
	}
}

package pipeline

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestChecker: what a response is compared with, by the column's type.
func TestChecker(t *testing.T) {
	for _, c := range []struct {
		line, response string
		right, ok      bool
	}{
		{`{"x":"Paris"}`, "Paris", true, true},
		{`{"x":"Paris"}`, " Paris", false, true},
		{`{"x":null}`, "Paris", false, false},
		{`{"x":5}`, "5", true, true},
		{`{"x":5}`, " 5.0\n", true, true},
		{`{"x":5}`, "five", false, true},
		{`{"x":9007199254740993}`, "9007199254740992", false, true},
		{`{"x":0.5}`, ".50", true, true},
		{`{"x":0.1}`, "1e-1", true, true},
		{`{"x":0.1}`, "1e999999999", false, true},
		{`{"x":true}`, "True", true, true},
		{`{"x":true}`, "yes", false, true},
	} {
		in := linesOf(t, c.line, `{"x":null}`)
		check, err := findChecker(in, &Options{Check: "x"})
		if err != nil {
			t.Fatal(err)
		}
		r := in.Reader(0, 1)
		records, err := r.Read()
		if err != nil {
			t.Fatal(err)
		}
		if right, ok := check.right(c.response, records[0]); right != c.right || ok != c.ok {
			t.Errorf("%s, %q: %v, %v", c.line, c.response, right, ok)
		}
		r.Close()
	}
	type odd struct {
		L []int64 `parquet:"l,list"`
	}
	in := inputOf(t, []odd{{}})
	for _, o := range []Options{{Check: "l"}, {Check: "no"}, {CheckBy: "l"}} {
		if _, err := findChecker(in, &o); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
}

// TestGroups: counts by group are those of all, whatever is added in which pieces.
func TestGroups(t *testing.T) {
	type row struct {
		Prompt string `parquet:"prompt"`
		Task   string `parquet:"task"`
		Answer string `parquet:"answer"`
	}
	in := inputOf(t, []row{{"a", "x", "?"}, {"b", "y", "?"}, {"c", "x", "?"}, {"d", "x", "?"}})
	dir := t.TempDir()
	j := newJob(t, in, Options{Check: "answer", CheckBy: "task", PartRows: 2}, &stub{vocab: 2000, length: 4}, dir)
	if err := j.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := map[string]Checked{"x": {3, 0}, "y": {1, 0}}
	m, err := readManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, m.Counts.Groups); d != "" || j.Counts.Checked.Load() != 4 {
		t.Error(d)
	}
	sum := ManifestCounts{}
	sum.add(&m.Counts)
	sum.add(&m.Counts)
	if d := cmp.Diff(map[string]Checked{"x": {6, 0}, "y": {2, 0}}, sum.Groups); d != "" {
		t.Error(d)
	}
	g := groups{}
	for i := range 2 * maxGroups {
		g = g.add(string(rune(0x4e00+i)), Checked{1, 1})
	}
	if len(g) != maxGroups+1 || g[otherGroups].Checked != maxGroups {
		t.Errorf("%d groups, %+v of others", len(g), g[otherGroups])
	}
}

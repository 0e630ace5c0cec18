package pipeline

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"glmbatch/datasets"
)

// TestCompare: rows are matched by their numbers, whatever columns are called.
func TestCompare(t *testing.T) {
	outputs := func(o Options, lines ...string) *datasets.Input {
		dir := t.TempDir()
		if err := newJob(t, linesOf(t, lines...), o, &stub{vocab: 2000, length: 4}, dir).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		in, err := datasets.Open([]string{filepath.Join(dir, datasets.OutputsDir, "part-00000.parquet")})
		if err != nil {
			t.Fatal(err)
		}
		return in
	}
	lines := []string{`{"prompt":"a","task":"x"}`, `{"prompt":null,"task":"y"}`, `{"prompt":"c","task":"x"}`}
	two := Options{Params: Params{N: 2}}
	a, same := outputs(two, lines...), outputs(Options{Params: Params{N: 2},
		Names: datasets.Naming{Prefix: "b_", Response: "said"}}, lines...)
	c, err := Compare(a, same, CompareOptions{By: "task", Check: "task"})
	if err != nil || !c.Equal() || c.First != nil {
		t.Fatalf("%+v, %v", c, err)
	}
	want := map[string]Compared{"x": {Rows: 4, Equal: 4, Check: 4}, "y": {Rows: 1, Equal: 1, Check: 1}}
	if d := cmp.Diff(want, c.Groups); d != "" || c.All.Rows != 5 || c.Reasons["error"].Rows != 1 {
		t.Errorf("%s, %+v", d, c)
	}
	// Other seeds, one sample less of each row, a row less.
	other := outputs(Options{Seed: 7}, lines[:2]...)
	if c, err = Compare(a, other, CompareOptions{}); err != nil {
		t.Fatal(err)
	}
	if c.Equal() || c.All.Rows != 2 || c.All.Equal != 1 || c.OnlyA != 3 || c.OnlyB != 0 || c.Groups != nil ||
		c.First == nil || c.First.Row != 0 || c.First.A == c.First.B {
		t.Errorf("%+v, %+v", c, c.First)
	}
	dirs := [2]string{t.TempDir(), t.TempDir()}
	for i, dir := range dirs {
		if err := newJob(t, linesOf(t, lines[i:]...), two, &stub{vocab: 2000, length: 4},
			dir).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if same, other := OtherInput(dirs[0], dirs[0]), OtherInput(dirs[0], dirs[1]); same != "" ||
		!strings.Contains(other, "other rows") {
		t.Errorf("inputs: %q, %q", same, other)
	}
	if _, err := Compare(linesOf(t, lines...), a, CompareOptions{}); err == nil ||
		!strings.Contains(err.Error(), "name the output of a job") {
		t.Errorf("prompts: %v", err)
	}
	if _, err := Compare(a, same, CompareOptions{By: "no"}); err == nil ||
		!strings.Contains(err.Error(), `no column "no"`) {
		t.Errorf("no such column: %v", err)
	}
}

// Package golden compares what a test got with a file of its package's testdata. Run with
// -update, tests write the files anew: the diff is what changed.
//
// There are no types: [Check], and [Update] for tests whose files lie elsewhere.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite golden files")

// Update reports whether golden files are to be rewritten.
func Update() bool { return *update }

// Check compares got with testdata/name.
func Check(t testing.TB, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s differs (-update rewrites it, if the change is meant):\n%s", path, d)
	}
}

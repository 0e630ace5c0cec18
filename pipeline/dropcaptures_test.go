package pipeline

import (
	"os"
	"path/filepath"
	"testing"
)

// Folders have names that are patterns to a shell; other captures stay.
func TestDropCaptures(t *testing.T) {
	for _, name := range []string{"out", "out[1]", "out[1", "o*t"} {
		dir := filepath.Join(t.TempDir(), name, "captures")
		if err := dropCaptures(filepath.Dir(dir)); err != nil {
			t.Errorf("%s without captures: %v", name, err)
		}
		if err := os.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{"row-7.arrow", "step-00000001.arrow"} {
			if err := os.WriteFile(filepath.Join(dir, file), nil, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if err := dropCaptures(filepath.Dir(dir)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		left, err := os.ReadDir(dir)
		if err != nil || len(left) != 1 || left[0].Name() != "step-00000001.arrow" {
			t.Errorf("%s: %v is left, %v", name, left, err)
		}
	}
}

// What a crash left of a capture goes with the next start; captures, other files and what a
// link leads to stay.
func TestUnfinishedCaptures(t *testing.T) {
	for _, linked := range []bool{false, true} {
		out, elsewhere := t.TempDir(), t.TempDir()
		dir := filepath.Join(out, "captures")
		at := dir
		if linked {
			at = elsewhere
			if err := os.Symlink(elsewhere, dir); err != nil {
				t.Fatal(err)
			}
		} else if err := os.Mkdir(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{".row-7.arrow.ABCDEFGHIJKL.tmp", "row-7.arrow", "notes.tmp"} {
			if err := os.WriteFile(filepath.Join(at, name), nil, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if err := removeUnfinished(out); err != nil {
			t.Fatal(err)
		}
		left, err := os.ReadDir(at)
		if want := map[bool]int{false: 2, true: 3}[linked]; err != nil || len(left) != want {
			t.Errorf("linked %v: %v is left, %v", linked, left, err)
		}
	}
}

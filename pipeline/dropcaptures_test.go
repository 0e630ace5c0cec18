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

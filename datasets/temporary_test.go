package datasets

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTemporary: a folder goes with Close, and one that a killed process left with the
// next; not one that is in use, nor what is somebody else's, nor a job's.
func TestTemporary(t *testing.T) {
	place := t.TempDir()
	t.Setenv("TMPDIR", place)
	used, err := OpenStream(strings.NewReader(`{"prompt":"a"}`), "lines")
	if err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(place, temporaryPrefix+"1")
	for name, mode := range map[string]os.FileMode{left: 0o700, filepath.Join(place, temporaryPrefix+"2"): 0o755} {
		if err := os.Mkdir(name, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(name, temporaryLock), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	jobs := map[string]string{"glmbatch-out": ".lock", temporaryPrefix + "3": ".lock", "glmbatch-1": temporaryLock}
	for name, lock := range jobs {
		if err := os.Mkdir(filepath.Join(place, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(place, name, lock), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	next, err := NewTemporary()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left); err == nil {
		t.Error("a folder that nobody uses stays")
	}
	if got := rowsOf(t, used); got[0] != `{"prompt":"a"}` {
		t.Errorf("the folder in use has %s", got)
	}
	if err := used.Close(); err != nil {
		t.Error(err)
	}
	if err := next.Remove(); err != nil {
		t.Error(err)
	}
	for name := range jobs {
		path := filepath.Join(place, name)
		if _, err := os.Stat(path); err != nil {
			t.Errorf("what is none of these folders is removed: %v", err)
		}
		if err := os.RemoveAll(path); err != nil {
			t.Error(err)
		}
	}
	entries, err := os.ReadDir(place)
	if err != nil || len(entries) != 1 || entries[0].Name() != temporaryPrefix+"2" {
		t.Errorf("left are %v (%v)", entries, err)
	}
}

//go:build unix

package datasets

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestPipes: what is no file is refused, not waited for.
func TestPipes(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"pipe.parquet", "pipe.arrow"} {
		path := filepath.Join(dir, name)
		if err := syscall.Mkfifo(path, 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := Open([]string{path}); err == nil || !strings.Contains(err.Error(), "not a file") {
			t.Errorf("%s as input: %v", name, err)
		}
		if _, err := everyRow[Span](path); err == nil || !strings.Contains(err.Error(), "not a file") {
			t.Errorf("%s as a table: %v", name, err)
		}
	}
}

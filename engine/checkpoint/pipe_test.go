//go:build unix

package checkpoint

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestPipes: what is no file is refused, not waited for.
func TestPipes(t *testing.T) {
	for _, name := range []string{ConfigFile, QuantFile, "model.safetensors", "model.safetensors.index.json"} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, ConfigFile), []byte("{}"), 0o666); err != nil {
			t.Fatal(err)
		}
		os.Remove(filepath.Join(dir, name)) // it may not be there
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), name+" is not a file") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

package datasets

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A file takes the place of a regular file only, and a link to it stays.
func TestFileInPlaceOfAnother(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{
		os.WriteFile(at("file"), []byte("old"), 0o666),
		os.Symlink("file", at("link")),
		os.Mkdir(at("folder"), 0o777),
		syscall.Mkfifo(at("pipe"), 0o666),
		os.Symlink("pipe", at("link to pipe")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ name, file, fault string }{
		{"new", "new", ""},
		{"file", "file", ""},
		{"link", "file", ""},
		{"folder", "", "folder is a folder: give the name of a file"},
		{"pipe", "", "pipe is a device or pipe: give the name of a file"},
		{"link to pipe", "", "link to pipe is a device or pipe: give the name of a file"},
	} {
		before, _ := os.Lstat(at(c.name))
		err := WriteFile(at(c.name), []byte(c.name))
		after, there := os.Lstat(at(c.name))
		if there != nil || before != nil && before.Mode() != after.Mode() {
			t.Errorf("%s: %v before, %v after (%v)", c.name, before, after, there)
		}
		if c.fault != "" {
			if err == nil || !strings.HasSuffix(err.Error(), c.fault) {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if b, read := os.ReadFile(at(c.file)); err != nil || read != nil || string(b) != c.name {
			t.Errorf("%s: %q in %s: %v, %v", c.name, b, c.file, err, read)
		}
	}
}

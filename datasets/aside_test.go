package datasets

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
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

// TestAsideLinks: the name of an unfinished file cannot be foreseen, and a link that
// another user left at a name is not followed.
func TestAsideLinks(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("not ours"), 0o666); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "t.parquet")
	for _, name := range []string{".t.parquet.tmp", ".t.parquet..tmp"} { // as names were once
		if err := os.Symlink(outside, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	names := map[string]bool{}
	for range 100 {
		a, err := CreateAside(path)
		if err != nil {
			t.Fatal(err)
		}
		names[a.file.Name()] = true
		if _, err := a.Write([]byte("ours")); err != nil {
			t.Fatal(err)
		}
		if err := a.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	if len(names) != 100 {
		t.Errorf("%d names of 100 files", len(names))
	}
	if os.Geteuid() == 0 { // who may make links of others
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(outside, path); err != nil {
			t.Fatal(err)
		}
		if err := os.Lchown(path, 1000, 1000); err != nil {
			t.Fatal(err)
		}
		if err := WriteFile(path, []byte("ours")); err == nil ||
			!strings.Contains(err.Error(), "is a link that another user made") {
			t.Errorf("another's link: %v", err)
		}
	}
	if b, err := os.ReadFile(outside); err != nil || string(b) != "not ours" {
		t.Errorf("the file outside is %q, %v", b, err)
	}
}

// TestAsideTogether: of many that write one name at a time, one is there, whole; what
// is there has the permissions that new files have.
func TestAsideTogether(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t")
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			if err := WriteFile(path, bytes.Repeat([]byte{byte('0' + i)}, 200_000)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	b, err := os.ReadFile(path)
	if err != nil || len(b) != 200_000 || len(bytes.Trim(b, string(b[:1]))) != 0 {
		t.Errorf("%d bytes of several, %v", len(b), err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("%v is left, %v", left, err)
	}
	plain := path + ".plain"
	if err := os.WriteFile(plain, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	have, err1 := os.Stat(path)
	want, err2 := os.Stat(plain)
	if err1 != nil || err2 != nil || have.Mode() != want.Mode() {
		t.Errorf("mode %v, that of new files is %v (%v, %v)", have.Mode(), want.Mode(), err1, err2)
	}
}

// TestRemoveUnfinished: what a process that has no time left has begun goes away.
func TestRemoveUnfinished(t *testing.T) {
	const unfinishedDir = "GLMBATCH_TEST_UNFINISHED"
	if dir := os.Getenv(unfinishedDir); dir != "" {
		if _, err := CreateAside(filepath.Join(dir, "t")); err != nil {
			t.Fatal(err)
		}
		RemoveUnfinished()
		return
	}
	dir := t.TempDir()
	c := exec.Command(os.Args[0], "-test.run=^TestRemoveUnfinished$") // those of other tests are not ours to remove
	c.Env = append(os.Environ(), fmt.Sprintf("%s=%s", unfinishedDir, dir))
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

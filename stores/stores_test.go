package stores

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"glmbatch/stores/storestest"
)

func bytesOf(n int, seed uint64) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(seed)})
	_, _ = r.Read(b) // never fails
	return b
}

// TestObject reads an object in pieces, of a server that refuses, ends connections and
// is slow.
func TestObject(t *testing.T) {
	s := storestest.New(t)
	s.Faults = storestest.Faults{Refuse: 0.2, Reset: 0.2, Slow: 0.1, Seed: 3}
	want := bytesOf(3*blockBytes+12345, 1)
	s.Put(t, "dir/a b%20.bin", want)
	ctx := context.Background()
	o, err := Open(ctx, s.URL("dir/a b%20.bin"))
	if err != nil {
		t.Fatal(err)
	}
	if o.Size != int64(len(want)) || o.ModTime == 0 {
		t.Errorf("size %d, time %d", o.Size, o.ModTime)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		from := r.IntN(len(want))
		got := make([]byte, r.IntN(2*blockBytes))
		n, err := o.ReadAt(got, int64(from))
		if wanted := min(len(got), len(want)-from); n != wanted || (err != nil) != (wanted < len(got)) {
			t.Fatalf("%d bytes at %d: %d, %v", len(got), from, n, err)
		}
		if !slices.Equal(got[:n], want[from:from+n]) {
			t.Fatalf("%d bytes at %d are others", len(got), from)
		}
	}
	if s.Injected() < 5 {
		t.Errorf("%d faults: the test tests nothing", s.Injected())
	}
	// An object that is written anew is not mixed with the old.
	o, err = Open(ctx, s.URL("dir/a b%20.bin"))
	if err != nil {
		t.Fatal(err)
	}
	s.Put(t, "dir/a b%20.bin", bytesOf(3*blockBytes+1, 2))
	if _, err := o.ReadAt(make([]byte, 10), 0); !errors.Is(err, errChanged) {
		t.Errorf("a changed object: %v", err)
	}
	if _, err := Open(ctx, s.URL("dir/none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no object: %v", err)
	}
}

// TestMirror: what a folder has is there, its last names after all else, and comes back.
func TestMirror(t *testing.T) {
	s := storestest.New(t)
	s.Faults = storestest.Faults{Refuse: 0.1, Reset: 0.05, Seed: 9}
	ctx, dir := context.Background(), t.TempDir()
	write := func(name string, data []byte) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, data, 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	big := bytesOf(partBytes*2+777, 4)
	write("outputs/part-00000.parquet", big)
	write("outputs/.part-00001.parquet.tmp", big)
	write("journal/0", []byte("x"))
	write("late/0", []byte("x"))
	write("_manifest.json", []byte("{}"))
	write(".lock", nil)
	m := Mirror{Dir: dir, URL: s.URL("jobs/one"), Last: []string{"_manifest.json", "_SUCCESS"}, Late: "late"}
	if err := m.Push(ctx); err != nil {
		t.Fatal(err)
	}
	if got := s.Keys(t); !slices.Equal(got, []string{"jobs/one/journal/0", "jobs/one/outputs/part-00000.parquet"}) {
		t.Errorf("after a push: %v", got)
	}
	before := s.Puts()
	if err := m.Push(ctx); err != nil || s.Puts() != before {
		t.Errorf("what was there is written again: %v", err)
	}
	write("_SUCCESS", nil)
	if err := os.Remove(filepath.Join(dir, "journal/0")); err != nil {
		t.Fatal(err)
	}
	if err := m.Finish(ctx); err != nil {
		t.Fatal(err)
	}
	if got := s.Keys(t); !slices.Equal(got, []string{"jobs/one/_SUCCESS", "jobs/one/_manifest.json", "jobs/one/late/0",
		"jobs/one/outputs/part-00000.parquet"}) {
		t.Errorf("at the end: %v", got)
	}
	if s.LastPut() != "jobs/one/_SUCCESS" {
		t.Errorf("%s is the last", s.LastPut())
	}
	back := Mirror{Dir: t.TempDir(), URL: m.URL, Last: m.Last}
	if err := back.Pull(ctx); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(back.Dir, "outputs/part-00000.parquet")); err != nil ||
		!slices.Equal(got, big) {
		t.Errorf("%d bytes come back of %d: %v", len(got), len(big), err)
	}
	before = s.Puts()
	if err := back.Finish(ctx); err != nil || s.Puts() != before {
		t.Errorf("what came from there is written again: %v", err)
	}
}

// TestPermanent: what stays so is said at once.
func TestPermanent(t *testing.T) {
	s := storestest.New(t)
	s.Faults = storestest.Faults{Forbid: true}
	start := time.Now()
	if _, err := Open(context.Background(), s.URL("x")); err == nil {
		t.Error("an object that is forbidden opens")
	}
	if s.Requests() > 3 {
		t.Errorf("%d requests in %v for what is forbidden", s.Requests(), time.Since(start))
	}
	for _, bad := range []string{"s3://", "s3:///key", "gs://"} {
		if _, err := Open(context.Background(), bad); err == nil {
			t.Errorf("%s opens", bad)
		}
	}
}

// A folder that is gone is an error, and nothing is removed at the URL.
func TestMirrorOfNothing(t *testing.T) {
	s := storestest.New(t)
	s.Put(t, "job/outputs/part-00000.parquet", []byte("rows"))
	m := Mirror{Dir: filepath.Join(t.TempDir(), "job"), URL: s.URL("job")}
	if err := m.Pull(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(m.Dir); err != nil {
		t.Fatal(err)
	}
	if err := m.Finish(context.Background()); err == nil {
		t.Error("a folder that is gone is uploaded")
	}
	if got := s.Keys(t); !slices.Equal(got, []string{"job/outputs/part-00000.parquet"}) {
		t.Errorf("there are %v", got)
	}
}

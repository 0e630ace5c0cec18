package journal

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// kept is a record as tests keep it.
type kept struct {
	at, key int64
	data    string
}

func open2(t rapid.TB, dir string, o Options) (*Journal, Found, []kept) {
	t.Helper()
	var all []kept
	o.noSync = true
	j, found, err := Open(dir, "us", o, func(r Record) error {
		all = append(all, kept{r.At, r.Key, string(r.Data)})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return j, found, all
}

// TestJournal: what was appended is there, at its place, whatever the files' sizes and
// however often it is opened; what Trim may remove is all that is missing.
func TestJournal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "journal")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		o := Options{FileBytes: rapid.Int64Range(1, 2000).Draw(t, "file"), Buffer: rapid.IntRange(1, 300).Draw(t,
			"buffer")}
		j, _, _ := open2(t, dir, o)
		var want []kept
		least := int64(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				if err := j.Close(); err != nil {
					t.Fatal(err)
				}
				var got []kept
				var found Found
				j, found, got = open2(t, dir, o)
				if found.Torn != 0 || !covers(got, want, least) {
					t.Fatalf("%d bytes torn, %v of %v, needed from %d", found.Torn, got, want, least)
				}
			case 1:
				least = max(least, rapid.Int64Range(0, 20).Draw(t, "least"))
				if err := j.Trim(least); err != nil {
					t.Fatal(err)
				}
			case 2:
				if err := j.Sync(); err != nil {
					t.Fatal(err)
				}
			default:
				k := kept{key: rapid.Int64Range(0, 30).Draw(t, "key"), data: string(rapid.SliceOfN(rapid.Byte(), 0,
					400).Draw(t, "data"))}
				if k.at, err = j.Append(k.key, []byte(k.data)); err != nil || k.at == 0 {
					t.Fatal(k.at, err)
				}
				want = append(want, k)
			}
		}
		for _, k := range want {
			if data, err := j.Read(k.at); k.key >= least && (err != nil || string(data) != k.data) {
				t.Fatalf("at %d: %q, %v; want %q", k.at, data, err, k.data)
			}
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// covers reports whether got has all of want that is needed, in order.
func covers(got, want []kept, least int64) bool {
	i := 0
	for _, k := range want {
		switch {
		case i < len(got) && got[i] == k:
			i++
		case k.key >= least:
			return false
		}
	}
	return i == len(got)
}

// TestTorn: whatever a crash leaves of the last file, the records before the cut are
// there, and what is appended then is there too.
func TestTorn(t *testing.T) {
	dir := t.TempDir()
	j, _, _ := open2(t, dir, Options{})
	var want []kept
	for i := range 20 {
		k := kept{key: int64(i), data: fmt.Sprintf("record %d %s", i, bytes.Repeat([]byte("x"), i))}
		var err error
		if k.at, err = j.Append(k.key, []byte(k.data)); err != nil {
			t.Fatal(err)
		}
		want = append(want, k)
	}
	end := j.End()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, fileName(1))
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if int64(len(whole)) != end-1 {
		t.Fatalf("%d bytes, the end is at %d", len(whole), end)
	}
	for n := 0; n < len(whole); n += 3 {
		for _, damage := range []func() []byte{
			func() []byte { return whole[:n] },
			// as file systems leave it
			func() []byte { return append(append([]byte{}, whole[:n]...), make([]byte, 100)...) },
			func() []byte { b := bytes.Clone(whole); b[n] ^= 0x40; return b },
		} {
			if err := os.WriteFile(path, damage(), 0o666); err != nil {
				t.Fatal(err)
			}
			j, _, got := open2(t, dir, Options{})
			if !covers(got, want[:len(got)], 0) || len(got) < 20 && int64(n)+1 > want[len(got)].at+
				int64(len(want[len(got)].data))+16 {
				t.Fatalf("damaged at %d: %d records", n, len(got))
			}
			at, err := j.Append(99, []byte("after"))
			if err != nil {
				t.Fatal(err)
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			j, found, again := open2(t, dir, Options{})
			if len(again) != len(got)+1 || again[len(got)] != (kept{at, 99, "after"}) || found.Torn != 0 {
				t.Fatalf("damaged at %d: %d records, then %d", n, len(got), len(again))
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			for _, f := range j.files {
				os.Remove(f.path)
			}
		}
	}
}

// TestOwner: another's files are no records of ours.
func TestOwner(t *testing.T) {
	dir := t.TempDir()
	j, _, _ := open2(t, dir, Options{})
	if _, err := j.Append(1, []byte("ours")); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j, found, err := Open(dir, "them", Options{}, func(r Record) error { return fmt.Errorf("%+v", r) })
	if err != nil || found.Records != 0 {
		t.Fatal(found, err)
	}
	if err := j.Remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the folder is there: %v", err)
	}
}

func FuzzScan(f *testing.F) {
	dir := f.TempDir()
	j, _, _ := open2(f, dir, Options{})
	for i := range 3 {
		if _, err := j.Append(int64(i), []byte("some record")); err != nil {
			f.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		f.Fatal(err)
	}
	seed, err := os.ReadFile(filepath.Join(dir, fileName(1)))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, fileName(1)), data, 0o666); err != nil {
			t.Fatal(err)
		}
		j, _, first := open2(t, dir, Options{})
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		j, _, again := open2(t, dir, Options{})
		if err := j.Close(); err != nil || len(first) != len(again) {
			t.Fatal(len(first), len(again), err)
		}
	})
}

package datasets

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// mutation damages a copy of a file.
type mutation struct {
	name   string
	footer bool // it may hit the footer
	make   func(r *rand.Rand, data []byte) []byte
}

func flip(data []byte, at int, bit uint) []byte {
	data[at] ^= 1 << bit
	return data
}

// footerAt is where the footer begins.
func footerAt(data []byte) int {
	n := len(data)
	return n - 8 - int(uint32(data[n-8])|uint32(data[n-7])<<8|uint32(data[n-6])<<16|uint32(data[n-5])<<24)
}

var mutations = []mutation{
	{"cut", false, func(r *rand.Rand, d []byte) []byte { return d[:r.IntN(len(d))] }},
	{"cut with footer", false, func(r *rand.Rand, d []byte) []byte {
		at := footerAt(d)
		n := 1 + r.IntN(at/2)
		return append(append([]byte{}, d[:at-n]...), d[at:]...)
	}},
	{"data bit", false, func(r *rand.Rand, d []byte) []byte {
		return flip(d, 4+r.IntN(footerAt(d)-4),
			uint(r.IntN(8)))
	}},
	{"footer bit", true, func(r *rand.Rand, d []byte) []byte {
		at := footerAt(d)
		return flip(d, at+r.IntN(len(d)-at), uint(r.IntN(8)))
	}},
	{"splat", true, func(r *rand.Rand, d []byte) []byte {
		at := r.IntN(len(d) - 64)
		for i := range 64 {
			d[at+i] = byte(r.Uint32())
		}
		return d
	}},
	{"zeros", true, func(r *rand.Rand, d []byte) []byte {
		at := 4 + r.IntN(len(d)-200)
		clear(d[at : at+128])
		return d
	}},
	{"footer splat", true, func(r *rand.Rand, d []byte) []byte {
		at := footerAt(d)
		at += r.IntN(len(d) - 8 - 16 - at)
		for i := range 16 {
			d[at+i] = byte(r.Uint32())
		}
		return d
	}},
	{"footer length", true, func(r *rand.Rand, d []byte) []byte {
		n := len(d)
		d[n-8], d[n-7], d[n-6], d[n-5] = byte(r.Uint32()), byte(r.Uint32()), byte(r.Uint32()), byte(r.Uint32())
		return d
	}},
}

// contents reads a file to the end: the schema, then every row as JSON. Text of
// a damaged file may be anything, an error is part of it.
func contents(data []byte) (text []byte, err error) {
	in, err := OpenBytes("mutant", data)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	r := in.Reader(0, in.Rows)
	defer r.Close()
	for {
		recs, err := r.Read()
		if err == io.EOF {
			return b.Bytes(), nil
		}
		if err != nil {
			return nil, err
		}
		for _, rec := range recs {
			for i := range in.root.fields {
				f, _ := in.Lookup(in.root.child(i).name)
				json, ok, err := f.JSON(nil, rec)
				fmt.Fprintf(&b, "%s %v %v of %s\n", json, ok, err, f.Name)
			}
		}
	}
}

// TestHostileParquet damages files in many ways. Reading one must end in an
// error, or give what the whole file gives (the damage was in statistics, names
// or padding): never a panic, never other values where only pages are damaged
// and they have checksums. (Footers have none.) It ends: that is part of the test.
func TestHostileParquet(t *testing.T) {
	// A file of ours, whose pages have checksums.
	own := filepath.Join(t.TempDir(), "own.parquet")
	w, err := Create[Span](own, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(testSpans(300)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"own": own}
	for _, name := range fixtures {
		files[name] = filepath.Join("testdata", name+".parquet")
	}
	const each = 12
	refused, total := 0, 0
	for name, path := range files {
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		want, err := contents(whole)
		if err != nil {
			t.Fatal(err)
		}
		for k, m := range mutations {
			r := rand.New(rand.NewPCG(uint64(k), 1))
			for i := range each {
				mutant := m.make(r, bytes.Clone(whole))
				got, err := contents(mutant)
				total++
				switch {
				case err != nil:
					refused++
				case name == "own" && !m.footer && !bytes.Equal(got, want):
					t.Errorf("%s, %s %d: other values without an error", name, m.name, i)
				}
			}
		}
	}
	t.Logf("%d of %d damaged files were refused, the others read", refused, total)
	if refused < 300 {
		t.Errorf("only %d of %d damaged files were refused", refused, total)
	}
}

// TestHostilePageHeader reads a file with a page header that claims a list of
// billions of entries, over which the library alone takes minutes.
func TestHostilePageHeader(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "hang.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := contents(data); err == nil {
		t.Error("no error")
	}
}

func FuzzOpenParquet(f *testing.F) {
	for _, name := range fixtures {
		data, err := os.ReadFile(filepath.Join("testdata", name+".parquet"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = contents(data) // it returns: that is the test
	})
}

// TestHostileArrow does the same to Arrow IPC files.
func TestHostileArrow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "own.arrow")
	w, err := Create[Span](path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(testSpans(300)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	r := rand.New(rand.NewPCG(7, 7))
	for i := range 60 {
		d := bytes.Clone(whole)
		switch i % 3 {
		case 0:
			d = d[:r.IntN(len(d))]
		case 1:
			d = flip(d, r.IntN(len(d)), uint(r.IntN(8)))
		case 2:
			at := r.IntN(len(d) - 64)
			for k := range 64 {
				d[at+k] = byte(r.Uint32())
			}
		}
		if err := os.WriteFile(path, d, 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := everyRow[Span](path); err != nil {
			refused++
		}
	}
	t.Logf("%d of 60 damaged files were refused", refused)
	if refused < 30 {
		t.Errorf("only %d of 60 damaged files were refused", refused)
	}
}

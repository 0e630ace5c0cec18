package datasets

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// spanFile is a small timeline as a file of a format.
func spanFile(t testing.TB, format string) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "t."+format)
	w, err := Create[Span](path, map[string]string{FindingsKey: `[]`})
	if err != nil {
		t.Fatal(err)
	}
	rows := []Span{{Step: 1, Lane: "device", Kernel: "gemm_bf16", Class: "gemm.bf16", EndNS: 5},
		{Step: 2, Lane: "host", Kernel: "read", Class: "host"}}
	if err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestCheckArrowPassesOurFiles(t *testing.T) {
	data := spanFile(t, Arrow)
	if err := checkArrow(bytes.NewReader(data), int64(len(data))); err != nil {
		t.Fatal(err)
	}
	for n := range data {
		if err := checkArrow(bytes.NewReader(data[:n]), int64(n)); err == nil {
			t.Fatalf("a file cut off after %d of %d bytes passes", n, len(data))
		}
	}
}

// Whatever a timeline file states, reading it ends in rows or in an error, with
// memory in proportion to the file.
func FuzzArrowSpans(f *testing.F)   { fuzzSpans(f, Arrow) }
func FuzzParquetSpans(f *testing.F) { fuzzSpans(f, Parquet) }

func fuzzSpans(f *testing.F, format string) {
	data := spanFile(f, format)
	f.Add(data)
	for i := 0; i < len(data); i += 97 {
		bad := bytes.Clone(data)
		bad[i] ^= 0x80
		f.Add(bad)
	}
	path := filepath.Join(f.TempDir(), "t."+format)
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var names Names
		if r, err := OpenSpans(path, &names, Sites|Details); err == nil {
			var c SpanColumns
			for i := range r.Blocks() {
				r.Steps(i)
				if r.Next(&c) != nil {
					break
				}
			}
			r.Close()
		}
		_ = Read(path, func([]Span) error { return nil })
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 1<<30+1<<16*uint64(len(data)) {
			t.Errorf("%d bytes were allocated for a file of %d", used, len(data))
		}
	})
}

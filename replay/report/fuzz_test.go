package report

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"glmbatch/datasets"
	"glmbatch/replay/timeline"
)

// FuzzTimeline feeds damaged timelines to reports, pages and exports: they end in an
// error, or in a ledger that adds up and exports that are well formed.
func FuzzTimeline(f *testing.F) {
	var sound [2][]byte
	for i, ext := range []string{datasets.Parquet, datasets.Arrow} {
		path := filepath.Join(f.TempDir(), "t."+ext)
		w, err := datasets.Create[datasets.Span](path, nil)
		if err != nil {
			f.Fatal(err)
		}
		if err := w.Write(example(false)); err != nil {
			f.Fatal(err)
		}
		if err := w.Close(); err != nil {
			f.Fatal(err)
		}
		if sound[i], err = os.ReadFile(path); err != nil {
			f.Fatal(err)
		}
	}
	// A change is a place and bytes to put there, so that files stay near the sound one.
	f.Add(false, uint32(100), []byte{255, 255, 255, 255, 255, 255, 255, 127})
	f.Add(true, uint32(1000), []byte{0, 0, 0, 128})
	f.Add(false, uint32(4), []byte{0x15})
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, arrow bool, at uint32, change []byte) {
		data, ext := bytes.Clone(sound[0]), datasets.Parquet
		if arrow {
			data, ext = bytes.Clone(sound[1]), datasets.Arrow
		}
		copy(data[int(at)%len(data):], change)
		path := filepath.Join(dir, "t."+ext)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := Load(path, Options{})
		if err != nil {
			return
		}
		for _, s := range r.Sections {
			sum := int64(0)
			for _, a := range s.Ledger {
				sum += a.NS
			}
			if sum != s.Wall {
				t.Errorf("a ledger of %d ns adds up to %d", s.Wall, sum)
			}
		}
		for _, format := range Formats {
			if err := r.Write(new(bytes.Buffer), format.Name, Style{}); err != nil {
				t.Error(err)
			}
		}
		out := filepath.Join(dir, "out.json")
		if _, _, err := (Source{Path: path}).Export(out, "chrome", timeline.AllSteps); err == nil {
			text, err := os.ReadFile(out)
			if err != nil || !json.Valid(text) {
				t.Errorf("the export is no JSON: %v", err)
			}
		}
		if p, err := (Source{Path: path}).Page(Options{}); err == nil {
			if err := p.Write(new(bytes.Buffer)); err != nil {
				t.Error(err)
			}
		}
	})
}

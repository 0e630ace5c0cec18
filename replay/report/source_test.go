package report

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"glmbatch/kernels/roofline"
	"glmbatch/replay/attribute"
	"glmbatch/replay/timeline"
)

// What is made of rows in memory is what is made of a file of them: reports, pages and
// exports.
func TestRowsInMemory(t *testing.T) {
	machine, _ := roofline.Named("h200")
	rows := example(false)
	file := Source{Path: writeRows(t, rows)}
	memory := Source{Path: file.Path, Rows: rows}
	for _, by := range []attribute.By{attribute.ByClass, attribute.ByKernel, attribute.ByLayer} {
		var texts [2]bytes.Buffer
		for i, s := range []Source{file, memory} {
			r, err := s.Report(Options{By: by, Machine: &machine})
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Write(&texts[i], "json", Style{}); err != nil {
				t.Fatal(err)
			}
		}
		if d := cmp.Diff(texts[0].String(), texts[1].String()); d != "" {
			t.Errorf("by %s: %s", by, d)
		}
	}
	var pages [2]bytes.Buffer
	var exports [2][]byte
	for i, s := range []Source{file, memory} {
		p, err := s.Page(Options{Machine: &machine})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Write(&pages[i]); err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(t.TempDir(), "x.json")
		if _, _, err := s.Export(out, "chrome", timeline.AllSteps); err != nil {
			t.Fatal(err)
		}
		if exports[i], err = os.ReadFile(out); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(pages[0].Bytes(), pages[1].Bytes()) {
		t.Error("the pages differ")
	}
	if !bytes.Equal(exports[0], exports[1]) {
		t.Error("the exports differ")
	}
}

// A timeline of a version that had not all columns is read.
func TestTimelineWithoutRope(t *testing.T) {
	r, err := Load("testdata/timeline-without-rope.parquet", Options{})
	if err != nil || len(r.Sections) != 2 || r.Rows == 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

package datasets

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// TestLongValues: values of any length come back, and are nowhere but in the
// compressed pages. Readers refuse headers and footers with long texts.
func TestLongValues(t *testing.T) {
	type row struct {
		Prompt string `parquet:"prompt"`
		Short  string `parquet:"short"`
	}
	var data bytes.Buffer
	w := parquet.NewGenericWriter[row](&data, noPageBounds)
	rows := []row{{"a" + strings.Repeat("x", 3<<20), "b"}, {"c", "d"}, {"y" + strings.Repeat("z", 5<<20), "a"}}
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	in, err := OpenBytes("long", data.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "part.parquet")
	out, err := NewOutput(in, Naming{}, Result{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := out.Create(path, map[string]string{"k": "v"})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range readAll(t, in.Reader(0, in.Rows)) {
		if err := p.Write(r, Result{FinishReason: "stop"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(file) > 64<<10 { // 8 MiB of two letters take no room in pages
		t.Errorf("the file has %d bytes", len(file))
	}
	f, err := parquet.OpenFile(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	columns := f.Metadata().RowGroups[0].Columns
	if s := columns[0].MetaData.Statistics; s.MinValue != nil || s.MaxValue != nil {
		t.Errorf("the footer has bounds of %d and %d bytes", len(s.MinValue), len(s.MaxValue))
	}
	if s := columns[1].MetaData.Statistics; string(s.MinValue) != "a" || string(s.MaxValue) != "d" {
		t.Errorf("short bounds are %q and %q, want a and d", s.MinValue, s.MaxValue)
	}
	back, err := Open([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	prompt, _ := back.Lookup("prompt")
	for i, r := range readAll(t, back.Reader(0, back.Rows)) {
		if s, ok, err := prompt.Text(r); err != nil || !ok || string(s) != rows[i].Prompt {
			t.Errorf("row %d has a prompt of %d bytes (%v, %v), want %d", i, len(s), ok, err, len(rows[i].Prompt))
		}
	}
	if meta, _, err := Metadata(path); err != nil || meta["k"] != "v" {
		t.Errorf("metadata is %v (%v)", meta, err)
	}
}

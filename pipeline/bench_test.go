package pipeline

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"glmbatch/datasets"
)

// benchRow is an input row of benchmarks: a short prompt and some columns to pass through.
type benchRow struct {
	ID     string  `parquet:"id"`
	Prompt string  `parquet:"prompt"`
	Score  float64 `parquet:"score"`
}

// benchInput writes a file of n rows.
func benchInput(t testing.TB, dir string, n int) string {
	t.Helper()
	path := filepath.Join(dir, fmt.Sprintf("prompts-%d.parquet", n))
	w, err := datasets.Create[benchRow](path, nil)
	if err != nil {
		t.Fatal(err)
	}
	rows := make([]benchRow, 0, 1000)
	for i := range n {
		rows = append(rows, benchRow{fmt.Sprintf("row-%d", i),
			fmt.Sprintf("Sort alphabetically: table, cloud %d, garden, paper %d", i%977, i), float64(i)})
		if len(rows) == cap(rows) || i == n-1 {
			if err := w.Write(rows); err != nil {
				t.Fatal(err)
			}
			rows = rows[:0]
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// runStub runs a file through the pipeline with an engine that costs next to nothing.
func runStub(t testing.TB, path, dir string, o Options) {
	t.Helper()
	in, err := datasets.Open([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	o.InFlight = 256
	if err := newJob(t, in, o, &stub{vocab: 2000, length: 4}, dir).Run(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkRun is the pipeline alone: read, template, tokenize, order,
// detokenize, write. Its figure is rows/s.
func BenchmarkRun(b *testing.B) {
	const rows = 200_000
	path := benchInput(b, b.TempDir(), rows)
	for name, o := range map[string]Options{"chat": {}, "raw": {Raw: true}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				dir := b.TempDir()
				runStub(b, path, dir, o)
				os.RemoveAll(dir)
			}
			b.ReportMetric(rows*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

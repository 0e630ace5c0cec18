package datasets

import (
	"fmt"
	"path/filepath"
	"testing"
)

func testSpans(n int) []Span {
	rows := make([]Span, n)
	for i := range rows {
		rows[i] = Span{Step: int64(i / 7), Rank: int32(i % 8), Lane: []string{"device", "host"}[i%2],
			Kernel: fmt.Sprintf("kernel_%d", i%13+i/66000),
			Class:  "gemm", StartNS: int64(i) * 1000, EndNS: int64(i)*1000 + 7, Dims: Dims{M: int32(i)},
			FLOPs: int64(i) << 20}
	}
	return rows
}

func TestTables(t *testing.T) {
	for _, format := range []string{Parquet, Arrow} {
		t.Run(format, func(t *testing.T) {
			want := testSpans(70_000) // several row groups and record batches, and a dictionary that grows
			dir := t.TempDir()
			p := Parts[Span]{Dir: filepath.Join(dir, "timeline"), Format: format, MaxRows: 67_000}
			for at := 0; at < len(want); at += 1000 {
				if err := p.Write(want[at : at+1000]); err != nil {
					t.Fatal(err)
				}
			}
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
			got, err := everyRow[Span](p.Dir)
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != len(want) {
				t.Fatalf("%d rows, want %d", len(got), len(want))
			}
			for i := range want {
				if got[i] != want[i] {
					t.Fatalf("row %d is %+v, want %+v", i, got[i], want[i])
				}
			}
			if p.Next != 2 {
				t.Errorf("%d files, want 2", p.Next)
			}
		})
	}
}

// everyRow returns all rows of a file or folder.
func everyRow[T any](path string) ([]T, error) {
	var all []T
	err := Read(path, func(rows []T) error {
		all = append(all, rows...)
		return nil
	})
	return all, err
}

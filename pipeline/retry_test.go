package pipeline

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"glmbatch/datasets"
	"glmbatch/kernels"
)

// TestRetryEarly: a job that was stopped behind rows with an error leaves a file that is
// not full. When these rows run again it goes with the files behind them, and no row is
// counted twice, however often that is stopped.
func TestRetryEarly(t *testing.T) {
	dir := t.TempDir()
	path := killRows(t, dir, 400)
	o := Options{Raw: true, TokenIDs: true}
	whole, out := filepath.Join(dir, "whole"), filepath.Join(dir, "out")
	if _, err := runBlamedWith(t, o, path, whole, "", 0, FolderOptions{}); err != nil {
		t.Fatal(err)
	}
	files, counts := result(t, whole)
	for range 3 { // two steps fail, and then row 17's alone
		if _, err := runBlamedWith(t, o, path, out, "device", 0, FolderOptions{}); !errors.Is(err, kernels.ErrDevice) {
			t.Fatal(err)
		}
	}
	// Some of the rows that were beside it or row 333 have run.
	if _, err := runBlamedWith(t, o, path, out, "", 25, FolderOptions{}); !errors.Is(err, ErrInterrupted) ||
		!early(t, out) {
		t.Fatal(err, early(t, out))
	}
	m, err := readManifest(out)
	if err != nil || m.Counts.Codes[StepFailed] != 1 {
		t.Fatalf("%+v, %v", m.Counts, err)
	}
	done := m.Counts.Rows
	retry := true
	for stops := 4; ; stops += 3 {
		j, err := runBlamedWith(t, o, path, out, "", stops, FolderOptions{Retry: retry})
		retry = false
		if err == nil {
			break
		}
		m, merr := readManifest(out)
		if merr != nil || !errors.Is(err, ErrInterrupted) || stops > 100 {
			t.Fatal(stops, err, merr)
		}
		n := m.Counts
		if n.Rows < done-int64(len(guilty)) || n.Rows > 400 || n.Rows != j.Counts.Rows.Load() ||
			n.Samples > counts.Samples || n.Errors > counts.Errors || n.Codes[StepFailed] != 0 {
			t.Errorf("%d stops: %d rows were done, now %+v", stops, done, n)
		}
		done = n.Rows
	}
	have, now := result(t, out)
	if !maps.Equal(files, have) {
		t.Error("the files are not those of a job without errors")
	}
	if d := cmp.Diff(counts, now); d != "" {
		t.Errorf("counts:\n%s", d)
	}
}

// early reports whether the last file of outputs is not full.
func early(t *testing.T, dir string) bool {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, datasets.OutputsDir, "part-*.parquet"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	if len(names) < 2 {
		return false
	}
	meta, _, err := datasets.Metadata(names[len(names)-1])
	return err == nil && meta[keyEarly] != ""
}

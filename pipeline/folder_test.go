package pipeline

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"glmbatch/engine"
	"glmbatch/kernels"
)

// recorded gives a job a recorder in its folder.
func recorded(j *Job) *Job {
	o := j.Folder.Recorder
	o.Policy = Policy{Every: 1}
	j.Recorder = NewRecorder(o)
	return j
}

// TestStartFails: a job that got no engine says so in its manifest. Its folder is
// anyone's as long as nothing is in it, and the same job's later.
func TestStartFails(t *testing.T) {
	in := demoInput(t)
	dir := filepath.Join(t.TempDir(), "[out]") // a pattern for globs
	o := Options{TokenIDs: true, InFlight: 32, PartRows: 100}
	start := func(o Options, e Engine) *Job { return recorded(newJob(t, in, o, e, dir)) }
	fails := func(o Options) {
		t.Helper()
		j := start(o, nil)
		if err := j.End(kernels.ErrMemory); !errors.Is(err, kernels.ErrMemory) {
			t.Fatalf("the error is %v", err)
		}
		j.Folder.Close()
		m, err := readManifest(dir)
		if err != nil || m.Status != StatusFailed || m.Error == "" || m.Counts.Rows < j.Folder.NextRow {
			t.Fatalf("manifest %+v, %v", m, err)
		}
	}
	other := o
	other.Seed = 9
	fails(other)
	fails(other)

	j := start(o, &failing{stub: stub{vocab: 2000, length: 9}, after: 100})
	if j.Folder.Resumed || j.Folder.Recorder.StepsPart != 0 {
		t.Errorf("another job's start goes on: %+v", j.Folder)
	}
	for i := range int64(7) { // as an engine would
		j.Recorder.OnStep(engine.StepInfo{Step: i})
	}
	if err := j.Run(context.Background()); !errors.Is(err, kernels.ErrDevice) {
		t.Fatal(err)
	}
	j.Folder.Close()
	rows := int64(len(readOut(t, dir)))
	if rows == 0 {
		t.Fatal("no rows: the test tests nothing")
	}

	p, err := NewPlan(in, other)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFolder(dir, &Manifest{Settings: p.Settings(), Input: in.Files},
		FolderOptions{}); !errors.Is(err, ErrFolder) {
		t.Errorf("a folder with rows is taken by another job: %v", err)
	}
	fails(o)
	j = start(o, &stub{vocab: 2000, length: 9})
	if f := j.Folder; !f.Resumed || f.Done() < rows || f.Recorder.FirstStep != 7 || f.Recorder.StepsPart != 1 {
		t.Errorf("after %d rows and 7 steps: %+v", rows, f)
	}
	if err := j.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if n := len(readOut(t, dir)); int64(n) != in.Rows {
		t.Errorf("%d rows in the end", n)
	}
}

// TestBegun: what another job may not remove unasked.
func TestBegun(t *testing.T) {
	for name, want := range map[string]bool{
		"outputs/part-00000.parquet":   true, // it is no Parquet file
		"outputs/.part-00000.tmp":      false,
		"steps/part-00000.parquet":     true,
		"steps/notes.txt":              true,
		"timeline/part-00000.arrow":    false, // phases of the host, before there was a step
		"captures/step-00000001.arrow": true,
		"captures/.step-1.tmp":         false,
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, name)
		if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o777),
			os.WriteFile(path, []byte("torn"), 0o666)); err != nil {
			t.Fatal(err)
		}
		if hasWork(dir, "") != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}

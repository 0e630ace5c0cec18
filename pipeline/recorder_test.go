package pipeline

import (
	"path/filepath"
	"testing"
	"time"

	"glmbatch/datasets"
	"glmbatch/datasets/datasetstest"
	"glmbatch/engine"
)

// TestRecorderFlushes: what was recorded a while ago is in files, also of a recorder
// that was never closed; a resumed one goes on behind them, and counts all.
func TestRecorderFlushes(t *testing.T) {
	dir := t.TempDir()
	r := NewRecorder(RecorderOptions{Dir: dir, Policy: Policy{Every: 1}})
	step := func(i int64) {
		s := r.take()
		s.info = engine.StepInfo{Step: i, Kind: "decode", Preempted: 1}
		s.timed, s.host = false, nil
		if _, err := r.write(nil, s); err != nil {
			t.Fatal(err)
		}
	}
	now := r.began
	files := 0
	for i := range int64(100) {
		step(i)
		now = now.Add(time.Minute)
		if err := r.flush(now); err != nil {
			t.Fatal(err)
		}
	}
	step(100) // which a kill takes
	names, err := parts(filepath.Join(dir, datasets.StepsDir))
	if err != nil {
		t.Fatal(err)
	}
	if files = len(names); files < 25 || files > 100 {
		t.Errorf("%d files in 100 minutes", files)
	}
	f := &Folder{Dir: dir}
	if err := f.records(); err != nil {
		t.Fatal(err)
	}
	if o := f.Recorder; o.FirstStep < 95 || o.Preempted != o.FirstStep || o.StepsPart != files {
		t.Errorf("a resumed recorder begins at %+v", o)
	}
	steps, err := datasetstest.ReadAll[datasets.Step](filepath.Join(dir, datasets.StepsDir))
	if err != nil || int64(len(steps)) != f.Recorder.FirstStep {
		t.Errorf("%d steps, %v", len(steps), err)
	}
	if err := r.close(false); err != nil {
		t.Fatal(err)
	}
}

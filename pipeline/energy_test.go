package pipeline

import (
	"path/filepath"
	"testing"

	"glmbatch/datasets"
	"glmbatch/datasets/datasetstest"
	"glmbatch/engine"
	"glmbatch/kernels"
	"glmbatch/replay/report"
	"glmbatch/telemetry"
)

// TestShortJobsEnergy: what is used before the first reading beside the steps, and after
// the last, counts too.
func TestShortJobsEnergy(t *testing.T) {
	joules := 1000.0
	stale := &telemetry.GPU{Count: 1, Joules: 990}
	o := RecorderOptions{Dir: t.TempDir(), GPU: func() *telemetry.GPU {
		return stale
	}, Now: func() *telemetry.GPU { return &telemetry.GPU{Count: 1, Joules: joules} }}
	r := NewRecorder(o)
	r.begin()
	for i := range int64(3) {
		joules += 50
		r.OnStep(engine.StepInfo{Step: i, Kind: "decode"})
	}
	if err := r.close(true); err != nil {
		t.Fatal(err)
	}
	if got := r.joules(); got == nil || *got != 150 {
		t.Errorf("%v J, want 150", *got)
	}
}

// TestEnergy: what the GPUs used in all runs of a job is in its manifest and report, by
// the meters, which go on between the runs; without a GPU that is null.
func TestEnergy(t *testing.T) {
	for _, format := range []string{datasets.Parquet, datasets.Arrow} {
		dir := t.TempDir()
		joules := 1000.0 // of the meter, which is older than the job
		for run := range 2 {
			f := &Folder{Dir: dir}
			if err := f.records(); err != nil {
				t.Fatal(err)
			}
			f.Recorder.Dir, f.Recorder.Format = dir, format
			f.Recorder.GPU = func() *telemetry.GPU {
				return &telemetry.GPU{Count: 1, Watts: 500, Joules: joules, Clock: 1980}
			}
			r := NewRecorder(f.Recorder)
			for i := range int64(5) {
				r.OnStep(engine.StepInfo{Step: i, Kind: "decode", Tokens: 10, Sampled: 5,
					Times: kernels.Times{Wall: kernels.Interval{End: 1e9}}})
				joules += 50
			}
			if err := r.close(true); err != nil {
				t.Fatal(err)
			}
			if got := r.joules(); got == nil || *got != float64(200*(run+1)) {
				t.Errorf("%s, run %d: %v J", format, run, got)
			}
			joules += 7000 // what others use in between
		}
		var e ManifestEngine
		f := &Folder{Dir: dir}
		if err := f.records(); err != nil {
			t.Fatal(err)
		}
		if e.setEnergy(f.Recorder.Energy.total(), &ManifestCounts{PromptTokens: 60, CompletionTokens: 40}); *e.Joules !=
			400 || *e.PerToken != 4 {
			t.Errorf("%s: %v J, %v J a token", format, *e.Joules, *e.PerToken)
		}
		all, err := report.ReadSteps(dir, "", nil)
		if err != nil || all.Energy == nil || all.Energy.Joules != 400 || all.Energy.PerToken != 4 ||
			all.Energy.PerSampled != 8 {
			t.Errorf("%s: %+v, %v", format, all, err)
		}
		steps, err := datasetstest.ReadAll[datasets.Step](filepath.Join(dir, datasets.StepsDir))
		if err != nil || *steps[7].GPUJoules != 100 || *steps[7].GPUClock != 1980 || steps[7].GPUCelsius != nil ||
			*steps[7].GPUThrottle != "" {
			t.Errorf("%s: %+v, %v", format, steps, err)
		}
	}
	var none energy
	none.add(nil)
	var e ManifestEngine
	if e.setEnergy(none.total(), &ManifestCounts{PromptTokens: 5}); e.Joules != nil || e.PerToken != nil {
		t.Errorf("without a GPU: %+v", e)
	}
}

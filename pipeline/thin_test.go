package pipeline

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"glmbatch/datasets"
	"glmbatch/engine"
	"glmbatch/kernels"
	"glmbatch/replay/report"
	"glmbatch/replay/timeline"
)

// recordJob records a job of so many steps as a run with --timeline auto does, in two
// runs, and returns the chosen steps that were written.
func recordJob(t *testing.T, dir string, seed uint64, steps int64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	slow := 1 + 2*rng.Float64() // the job's second half takes so much longer
	period := 2 + rng.Int64N(7)
	now, at := int64(0), int64(0)
	for _, end := range []int64{steps / 3, steps} {
		f := &Folder{Dir: dir}
		if err := f.records(); err != nil {
			t.Fatal(err)
		}
		f.Recorder.Dir, f.Recorder.Policy = dir, Policy{Sample: true}
		r := NewRecorder(f.Recorder)
		choose := r.Trace()
		for base := at; at < end; at++ {
			i := engine.StepInfo{Step: at - base, Kind: "decode", Sequences: 1, Tokens: 1}
			wall := 1_000_000 + rng.Int64N(200_000)
			switch {
			case at == 0:
				i.Kind = "prefill"
			case at%period == 0:
				i.Kind, wall = "mixed", 3*wall
			}
			if at > steps/2 {
				wall = int64(float64(wall) * slow)
			}
			if rng.IntN(100) == 0 { // a stall
				wall *= 4
			}
			i.Times.Wall = kernels.Interval{Start: now, End: now + wall}
			if i.Recorded = choose(i.Step, i.Kind); i.Recorded {
				span := kernels.Span{Start: now + 1000, End: now + wall - 1000}
				r.OnTrace(kernels.Trace{Step: i.Step, Kind: i.Kind, Times: i.Times,
					Calls: []kernels.Call{{Kernel: "embed_f32", Dims: kernels.Dims{M: 1, N: 8}}},
					Spans: [][]kernels.Span{{span}}})
			}
			r.OnStep(i)
			now += wall
		}
		if err := r.close(true); err != nil {
			t.Fatal(err)
		}
		if end == steps {
			if err := r.thin(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestReportAgreesWithSteps: what a report of the recorded steps says of a kind's mean
// holds for all steps, in twenty jobs whose second half is slower and that have stalls.
func TestReportAgreesWithSteps(t *testing.T) {
	kinds, some := 0, 0
	for seed := range uint64(20) {
		dir := filepath.Join(t.TempDir(), "out")
		for _, sub := range []string{datasets.StepsDir, datasets.TimelineDir} {
			if err := os.MkdirAll(filepath.Join(dir, sub), 0o777); err != nil {
				t.Fatal(err)
			}
		}
		steps := int64(150 + 200*seed)
		recordJob(t, dir, seed, steps)
		r, err := report.Load(dir, report.Options{})
		if err != nil {
			t.Fatal(err)
		}
		all, err := report.ReadSteps(dir, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Beside(all)
		if len(r.Recorded) < 2 {
			t.Fatalf("job %d: kinds %+v", seed, r.Recorded)
		}
		for _, k := range r.Recorded {
			kinds++
			if k.Steps < k.Of {
				some++
			}
			if !k.Agrees() || k.Of < k.Steps || k.Steps > timeline.SampleSteps ||
				k.Steps < min(k.Of, timeline.SampleSteps/4) {
				t.Errorf("job %d of %d steps: %+v", seed, steps, k)
			}
			if k.WorstNS < int64(k.AllNS) {
				t.Errorf("job %d: the worst of %s is %d ns", seed, k.Kind, k.WorstNS)
			}
		}
	}
	if kinds < 50 || some < 20 {
		t.Errorf("%d kinds of steps, of %d of them some were recorded", kinds, some)
	}
}

// TestThinKeepsWholeSteps: a step of a thinned timeline has all of its rows, and its
// files are still a timeline that a resumed job would go on behind.
func TestThinKeepsWholeSteps(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	recordJob(t, dir, 7, 5000)
	rows := map[int64]int{}
	err := datasets.Read(filepath.Join(dir, datasets.TimelineDir), func(spans []datasets.Span) error {
		for i := range spans {
			if spans[i].Step >= 0 {
				rows[spans[i].Step]++
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(rows); n < timeline.SampleSteps/2 || n > 2*timeline.SampleSteps+1 {
		t.Errorf("%d steps are left", n)
	}
	first := rows[0]
	for step, n := range rows {
		if n != first {
			t.Errorf("step %d has %d rows, not %d", step, n, first)
		}
	}
	f := &Folder{Dir: dir}
	if err := f.records(); err != nil {
		t.Fatal(err)
	}
	names, err := parts(filepath.Join(dir, datasets.TimelineDir))
	if err != nil || f.Recorder.FirstStep != 5000 || f.Recorder.TimelinePart < len(names) {
		t.Errorf("a resumed recorder begins at %+v, %v", f.Recorder, err)
	}
}

package main

import (
	"fmt"
	"sync/atomic"

	"glmbatch/engine"
	"glmbatch/kernels"
	"glmbatch/units"
)

// work counts what an engine's steps do. computed and shared are safe to read while
// they run, the rest is once they have ended.
type work struct {
	computed atomic.Int64 // tokens that went through the model
	shared   atomic.Int64 // tokens of prompts that did not have to: others had computed them

	steps     int64
	preempted int64
	verified  int64            // sequences with drafts, over the steps
	drafted   int64            // rows of drafts
	accepted  int64            // drafts that were right
	ns        map[string]int64 // of steps, by kind
	seats     float64          // sequences · ns
	pages     float64          // pages in use · ns
	most      int              // pages in use
}

func (w *work) add(i *engine.StepInfo) {
	w.computed.Add(int64(i.Tokens))
	w.shared.Add(int64(i.Shared))
	if w.ns == nil {
		w.ns = map[string]int64{}
	}
	w.steps++
	w.preempted += int64(i.Preempted)
	w.verified += int64(i.Verified)
	w.drafted += int64(i.Drafted)
	w.accepted += int64(i.Accepted)
	w.ns[i.Kind] += i.Times.Wall.NS()
	w.seats += float64(i.Sequences) * float64(i.Times.Wall.NS())
	w.pages += float64(i.Pages) * float64(i.Times.Wall.NS())
	w.most = max(w.most, i.Pages)
}

// tokens are those of prompts and answers that are done.
func (w *work) tokens() int64 { return w.computed.Load() + w.shared.Load() }

// jobFigures are what a whole job says of itself, in run and in bench --job.
type jobFigures struct {
	Seconds   float64 `json:"seconds"`
	Input     int64   `json:"input_tokens"`
	Output    int64   `json:"output_tokens"`
	Shared    int64   `json:"shared_prompt_tokens"` // of the input, not computed
	Steps     int64   `json:"steps"`
	Preempted int64   `json:"preemptions"`
	Verified  int64   `json:"verified"` // rows with drafts, over the steps
	Drafted   int64   `json:"drafted_tokens"`
	Accepted  int64   `json:"accepted_tokens"` // of them
	// Shares of the steps' time.
	Prefill float64 `json:"prefill_share"`
	Mixed   float64 `json:"mixed_share"`
	Decode  float64 `json:"decode_share"`
	// Means over the steps' time, as shares of the limits.
	Rows   float64 `json:"row_occupancy"`
	Memory float64 `json:"memory_occupancy"`
	Peak   float64 `json:"memory_peak"`
}

// figures sums up, for an engine of so many seats and pages.
func (w *work) figures(seconds float64, input, output int64, seats, pages int) jobFigures {
	all := float64(0)
	for _, ns := range w.ns {
		all += float64(ns)
	}
	all = max(all, 1)
	share := func(kind string) float64 { return float64(w.ns[kind]) / all }
	return jobFigures{Seconds: seconds, Input: input, Output: output, Shared: w.shared.Load(), Steps: w.steps,
		Preempted: w.preempted,
		Verified:  w.verified, Drafted: w.drafted, Accepted: w.accepted,
		Prefill: share(kernels.Prefill), Mixed: share(kernels.Mixed), Decode: share(kernels.Decode),
		Rows: w.seats / all / float64(max(1, seats)), Memory: w.pages / all / float64(max(1, pages)),
		Peak: float64(w.most) / float64(max(1, pages))}
}

// a returns how many of something a second are.
func (f *jobFigures) a(n int64) string { return units.Figure(float64(n) / max(f.Seconds, 1e-9)) }

// lines are the figures as text.
func (f *jobFigures) lines() []string {
	lines := []string{
		fmt.Sprintf("%s prompt tokens (%s/s), %s completion tokens (%s/s), together %s/s", units.Digits(f.Input),
			f.a(f.Input), units.Digits(f.Output), f.a(f.Output), f.a(f.Input+f.Output)),
		fmt.Sprintf("%s steps: %.1f %% of their time prefill, %.1f %% mixed, %.1f %% decode; %s sequences sent back",
			units.Digits(f.Steps), 100*f.Prefill, 100*f.Mixed, 100*f.Decode, units.Digits(f.Preempted)),
		fmt.Sprintf("%.1f %% of the seats and %.1f %% of the caches in use, at most %.1f %%", 100*f.Rows,
			100*f.Memory, 100*f.Peak),
	}
	if f.Shared > 0 {
		lines = append(lines, fmt.Sprintf("%s prompt tokens that rows share were computed once, %.1f %% of all",
			units.Digits(f.Shared), 100*float64(f.Shared)/float64(max(1, f.Input))))
	}
	if f.Verified > 0 {
		lines = append(lines,
			fmt.Sprintf("%.2f tokens a step of a row with drafts: %s of %s drafts were right, %.1f %%",
				1+float64(f.Accepted)/float64(f.Verified), units.Digits(f.Accepted), units.Digits(f.Drafted),
				100*float64(f.Accepted)/float64(max(1, f.Drafted))))
	}
	return lines
}

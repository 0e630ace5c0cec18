package main

import (
	"cmp"
	"errors"
	"fmt"

	"glmbatch/engine"
	"glmbatch/engine/fit"
	"glmbatch/engine/glm5"
	"glmbatch/pipeline"
	"glmbatch/units"
)

// layouts are the values of --layout.
var layouts = []string{string(glm5.Latency), string(glm5.Throughput)}

// autoLayout chooses one of them by the job.
const autoLayout = "auto"

const layoutUsage = "latency: ranks share each row's attention; throughput: each rank has rows, caches and whole " +
	"attention of its own, and they meet for MLPs and experts"

// checkDrafts refuses drafts that the prediction layer would make in a layout in which it makes
// none. The other way is said with their number.
func checkDrafts(o *glm5.Options, s engine.Speculation, flag, way string) error {
	if !o.Apart() || s.Drafts == 0 || s.NGram {
		return nil
	}
	return fmt.Errorf("%s: the prediction layer makes no drafts in --layout throughput: "+way, flag, s.Drafts)
}

// checkApart refuses what a layout of ranks with rows of their own does not have.
func (r *runFlags) checkApart() error {
	o := glm5.Options{Layout: glm5.Layout(r.layout), Shards: max(1, r.tp)}
	errs := []error{checkDrafts(&o, r.drafts, "--speculate "+r.speculate, "--speculate ngram:%d needs no such layer")}
	if least := leastContext * o.Homes(); r.kvTokens > 0 && r.kvTokens < least {
		errs = append(errs, fmt.Errorf("--kv-tokens %d has no room for a prompt: at least %d, or 0 for the default",
			r.kvTokens, least))
	}
	if o.Apart() && r.capture.steps != "" {
		errs = append(errs, errors.New("--capture is for --layout latency: of the other no steps can be replayed"))
	}
	return withCode(exitInput, errors.Join(errs...))
}

// leastRows is how many rows of a job each rank has at least with which auto gives ranks rows of
// their own: with few, each reads all of attention's weights for few rows.
const leastRows = 32

// chooseLayout puts a layout in auto's place, for a job of so many rows, and says which and why.
// A job that has begun keeps its own.
func (r *runFlags) chooseLayout(m *openedModel, rows int64, say *speaker) error {
	if r.layout != autoLayout {
		return nil
	}
	rows /= int64(max(1, r.rows.Shards)) // all shards choose alike
	if r.rows.Limit > 0 {
		rows = min(rows, r.rows.Limit)
	}
	r.layout = string(glm5.Throughput)
	apart := r.fitOf(m)
	layout, why := layoutFor(rows, r.tp, r.device.resolved(), r.needsLatency(), apart)
	if !r.overwrite {
		if was, begun := pipeline.SettingOf(r.jobDir(), "--layout"); begun {
			layout, why = glm5.Layout(cmp.Or(was, string(glm5.Latency))), "the job has begun in it"
		}
	}
	r.layout = string(layout)
	say.line("layout %s, as %s", layout, why)
	return r.checkApart()
}

// needsLatency is what of a job there is in that layout alone; "": nothing.
func (r *runFlags) needsLatency() string {
	switch {
	case r.drafts.Drafts > 0 && !r.drafts.NGram:
		return "the prediction layer makes drafts in it alone"
	case r.capture.steps != "":
		return "steps are captured in it alone"
	}
	return ""
}

// layoutFor chooses a layout by a job's rows, with the reason. needs: see needsLatency. apart is
// how the model fits in the throughput layout.
func layoutFor(rows int64, tp int, device, needs string, apart *fit.Fit) (l glm5.Layout, why string) {
	switch {
	case tp == 1:
		return glm5.Latency, "there is one rank"
	case device != "cuda":
		return glm5.Latency, "ranks take turns on a CPU"
	case needs != "":
		return glm5.Latency, needs
	case rows < leastRows*int64(tp):
		return glm5.Latency, fmt.Sprintf("%s rows are few for %d ranks", units.Digits(rows), tp)
	case !apart.Fits:
		return glm5.Latency, "attention's weights do not fit whole: " + apart.Fault
	}
	return glm5.Throughput, fmt.Sprintf("each of %d ranks has %s of %s rows, and a cache of up to %s tokens", tp,
		units.Digits(rows/int64(tp)), units.Digits(rows), units.Digits(apart.Tokens))
}

// fitOf is what the model takes, and what is left, where it is to run.
func (r *runFlags) fitOf(m *openedModel) *fit.Fit {
	cover, o := m.config.Cover(m.ck), r.modelOptions(m)
	return fit.New(cmp.Or(r.model, demoName), &m.config, fit.Of(&cover, r.tp, o), nil, o, roomHere(&r.device))
}

// limits are the most tokens and sequences of a step, on each rank where those have their own:
// what was asked for, of all ranks, or the usual ones.
func limits(o *glm5.Options, device string, tokens, seqs int) {
	n := o.Homes()
	o.MaxRows = cmp.Or((tokens+n-1)/n, fit.Rows(device, *o))
	o.MaxSeqs = cmp.Or((seqs+n-1)/n, defaultSeqs)
}

// cachesOf is what there is of caches.
func cachesOf(f *fit.Fit) string {
	if f.Caches > 1 {
		return fmt.Sprintf("%d caches", f.Caches)
	}
	return "caches"
}

package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"glmbatch/pipeline"
	"glmbatch/stores"
	"glmbatch/units"
)

// dryRun counts what a job would do.
func dryRun(ctx context.Context, w io.Writer, r *runFlags, plan *pipeline.Plan, m *openedModel) error {
	e, err := plan.Estimate(ctx, m.text)
	if err != nil {
		return withCode(exitInput, err)
	}
	kv, f := m.kvTokens, m.fits
	look, err := inspect(m.ck, &m.config, inspectOptions{TP: r.tp, KVCache: r.kvCache, KVTokens: kv, dense: r.dense})
	if err != nil {
		return withCode(exitInput, err)
	}
	o := r.modelOptions(m)
	budget, seqs := int64(o.MaxRows*o.Homes()), int64(o.MaxSeqs*o.Homes())
	if r.sharing == "off" {
		e.SharedTokens = 0
	}
	computed := e.PromptTokens - e.SharedTokens
	prefill, decode := (computed+budget-1)/budget, (e.MostTokens+seqs-1)/seqs
	var werr error
	p := func(name, format string, a ...any) {
		if _, err := fmt.Fprintf(w, "%-16s %s\n", name, fmt.Sprintf(format, a...)); werr == nil {
			werr = err
		}
	}
	p("columns read", "%s", strings.Join(plan.Taken, ", "))
	p("columns written", "%s", plan.Settings()["results"])
	for _, note := range plan.Notes {
		p("", "%s", note)
	}
	p("rows", "%s, %s outputs", units.Digits(e.Rows), units.Digits(e.Samples))
	p("row errors", "%s", units.Digits(e.Errors))
	for _, code := range slices.Sorted(maps.Keys(e.Codes)) {
		p("  "+code, "%s", units.Digits(e.Codes[code]))
	}
	p("prompt tokens", "%s, longest %s", units.Digits(e.PromptTokens), units.Digits(int64(e.LongestPrompt)))
	if e.SharedTokens > 0 {
		p("", "%s of them are shared by rows: %s are computed", units.Digits(e.SharedTokens), units.Digits(computed))
	}
	p("output tokens", "at most %s", units.Digits(e.MostTokens))
	p("longest sequence", "%s of a context of %s", units.Digits(int64(e.LongestSequence)),
		units.Digits(int64(plan.Options.Context)))
	p("steps", "at most about %s: %s of prompts at %s tokens a step, %s of output at %s sequences",
		units.Digits(prefill+decode), units.Digits(prefill), units.Digits(budget), units.Digits(decode),
		units.Digits(seqs))
	p("model", "%s, %s parameters, %s missing weights", look.Dir, units.Count(look.Params),
		units.Digits(int64(len(look.Missing)+len(look.Unreadable))))
	p("memory a rank", "%s of weights, %s of caches for %s tokens, %s for steps, %d ranks", units.Bytes(f.Weights),
		units.Bytes(look.Rank.Cache), units.Digits(kv), units.Bytes(f.Working), r.tp)
	if f.Memory > 0 {
		p("", "%s has %s free, of which %s are left alone: room for %s tokens", f.Where, units.Bytes(f.Memory),
			units.Bytes(f.Reserve), units.Digits(f.Tokens))
	}
	manifest, err := m.manifest(r, plan, nil)
	if err != nil {
		return err
	}
	known, err := r.remembered(manifest)
	if err != nil {
		return withCode(exitInput, err)
	}
	for _, line := range estimateText(known, &e) {
		p(line[0], "%s", line[1])
	}
	if r.out != "" {
		p("output", "%s", outputText(r, manifest))
	}
	if n := len(look.Missing) + len(look.Unreadable); n > 0 {
		return withCode(exitInput,
			fmt.Errorf("%s cannot be run: %d weights are missing or unreadable (see glmbatch model inspect)", look.Dir,
				n))
	}
	return werr
}

// estimateText says how long the job takes, and what energy, from a job that was like it.
func estimateText(known *rates, e *pipeline.Estimate) [][2]string {
	if known == nil {
		return [][2]string{{"time",
			"not known: no job of this model on this machine is remembered; run some rows (--limit 100), or name one " +
				"with --like"}}
	}
	x := known.estimate(e.PromptTokens, e.Samples-e.Errors, e.MostTokens)
	round := func(d time.Duration) string {
		unit := time.Second
		if d > time.Hour {
			unit = time.Minute
		}
		s := max(d, time.Second).Round(unit).String()
		if strings.HasSuffix(s, "m0s") {
			s = strings.TrimSuffix(s, "0s")
		}
		return s
	}
	text := [][2]string{
		{"time", fmt.Sprintf("about %s, from %s to %s", round(x.Usual), round(x.Lo), round(x.Hi))},
		{"",
			fmt.Sprintf("at the %s tokens/s of %s (%s to %s over its tenths), with responses of its %.0f tokens in "+
				"the mean, or at most as long as allowed",
				units.Digits(int64(known.Tokens)), known.From, units.Digits(int64(known.Lo)),
				units.Digits(int64(known.Hi)), known.Response)},
	}
	if known.Joules == nil {
		return append(text, [2]string{"energy", "not known: that job's was not measured, as without a GPU"})
	}
	return append(text, [2]string{"energy", fmt.Sprintf("about %s, from %s to %s", joulesText(x.Joules),
		joulesText(x.JLo), joulesText(x.JHi))})
}

// joulesText is an energy for people.
func joulesText(j float64) string {
	if j >= 36_000 {
		return fmt.Sprintf("%.2f kWh", j/3.6e6)
	}
	return fmt.Sprintf("%.0f J", j)
}

// outputText says what a run would find at --out, and do.
func outputText(r *runFlags, m *pipeline.Manifest) string {
	if stores.IsURL(r.out) {
		return r.out + ", which a run looks at when it begins"
	}
	dir := r.jobDir()
	if _, err := os.Stat(dir); err != nil {
		return dir + ": a new folder"
	}
	s, err := pipeline.ReadStatus(dir, time.Now())
	switch {
	case err != nil:
		return oneLine(err.Error())
	case r.overwrite:
		return dir + " is removed when the new job begins (--overwrite): it is " + finding(s)
	case len(s.Shards) > 0:
		return dir + ": " + finding(s)
	}
	other, err := pipeline.OtherJob(dir, m)
	switch {
	case err != nil:
		return oneLine(err.Error())
	case other != "":
		return fmt.Sprintf("%s: a run is refused, as it is of another job: %s (it is %s)", dir,
			oneLine(other), finding(s))
	}
	return dir + ": of this job, " + finding(s)
}

package replay

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"glmbatch/datasets"
	"glmbatch/engine/glm5"
	"glmbatch/kernels"
	"glmbatch/kernels/roofline"
	"glmbatch/replay/attribute"
	"glmbatch/replay/report"
	"glmbatch/telemetry"
)

// Loader loads the captured model with some options on so many ranks. The model
// that it returned before is not used any more.
type Loader func(o glm5.Options, ranks int) (*glm5.Model, error)

// Options say how a step is run again. The zero value is usable.
type Options struct {
	Repeat     int    // 0: 20
	Warmup     int    // runs before those that count; 0: 3; -1: none
	Verify     string // "": VerifyOutputs
	By         attribute.By
	Machine    *roofline.Machine // bounds are of it; nil: none
	PoolTokens int               // size of the caches; 0: as captured
	Evict      int64             // bytes that empty the caches; 0: nothing is run cold
	NoAlone    bool              // do not run calls alone
	NoMarginal bool              // do not leave classes out
	WhatIf     []WhatIf
	Since      func(time.Time) telemetry.Conditions // what the time since a moment was like; nil: nobody knows
	Stop       func() error                         // asked between runs, and its error ends the replay; nil: none

	Hash     string            // of the model that the loader loads
	Versions map[string]string // of this program
	Allow    []string          // model, device, version: what may differ from the capture
}

// What a replay may be allowed to differ in.
var allowed = []string{"model", "device", "version"}

const maxRepeat = 100_000

// Validate reports every fault of o.
func (o *Options) Validate() error {
	var errs []error
	fault := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	if o.Repeat < 0 || o.Repeat > maxRepeat {
		fault("repeat %d: it must be from 0 to %d", o.Repeat, maxRepeat)
	}
	if o.Warmup < -1 || o.Warmup > maxRepeat {
		fault("warmup %d: it must be from -1 to %d", o.Warmup, maxRepeat)
	}
	if o.Verify != "" && o.Verify != VerifyOutputs && o.Verify != VerifyCalls {
		fault("verify %q: it is %s or %s", o.Verify, VerifyOutputs, VerifyCalls)
	}
	if o.By != "" && !o.By.Known() {
		fault("cannot group by %q: there are %s", o.By, attribute.Groupings())
	}
	if o.PoolTokens < 0 || o.PoolTokens > 1<<31-kernels.PageTokens {
		fault("a pool of %d tokens: it must be from 0 to %d", o.PoolTokens, 1<<31-kernels.PageTokens)
	}
	for _, a := range o.Allow {
		if !slices.Contains(allowed, a) {
			fault("allow %q: there are %s", a, strings.Join(allowed, ", "))
		}
	}
	return errors.Join(errs...)
}

func (o Options) withDefaults() Options {
	if o.Repeat == 0 {
		o.Repeat = 20
	}
	switch o.Warmup {
	case 0:
		o.Warmup = 3
	case -1:
		o.Warmup = 0
	}
	if o.Verify == "" {
		o.Verify = VerifyOutputs
	}
	return o
}

// ErrRefused: the capture is of another model, device or program.
var ErrRefused = errors.New("the capture is not of this setup")

// refuse reports what differs from the capture and is not allowed to.
func (o *Options) refuse(c *Capture, kind string) error {
	var errs []error
	check := func(name, was, is string) {
		if was != is && !slices.Contains(o.Allow, name) {
			errs = append(errs, fmt.Errorf("%w: %s %q, captured was %q (--allow %s)", ErrRefused, name, is, was, name))
		}
	}
	check("model", c.Hash, o.Hash)
	if kind != "" {
		check("device", c.Device.Kind, kind)
	}
	for _, v := range []string{"glmbatch", "vcs.revision"} {
		check("version", c.Versions[v], o.Versions[v])
	}
	return errors.Join(errs...)
}

// Run runs a captured step again: checks what comes out, measures, and measures
// again with each change. An error that wraps ErrMismatch comes with a result
// that has only the verdict.
func Run(c *Capture, load Loader, o Options) (*Result, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	if err := o.refuse(c, ""); err != nil {
		return nil, err
	}
	st := &stage{c: c, o: &o, load: load}
	s, err := st.set(c.Options, c.Ranks, o.PoolTokens > 0)
	if err != nil {
		return nil, err
	}
	info := s.m.Group().Info()
	if err := o.refuse(c, info.Kind); err != nil {
		return nil, err
	}
	if err := s.sameProgram(); err != nil && !slices.Contains(o.Allow, "version") {
		return nil, fmt.Errorf("%w: %w (--allow version)", ErrRefused, err)
	}
	r := &Result{Capture: c, Device: info}
	if r.Verdict, err = s.verify(o.Verify); err != nil {
		return r, err
	}
	tokens, err := s.fetch()
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	if r.Figures, err = st.measure(s, s.calls, "as captured"); err != nil {
		return nil, err
	}
	if o.Since != nil {
		now := o.Since(begun)
		r.Conditions = &now
	}
	if err := st.apart(s, &r.Figures); err != nil {
		return nil, err
	}
	r.explain()
	for _, w := range o.WhatIf {
		ch, err := st.change(w, &r.Figures, tokens)
		if err != nil {
			return nil, fmt.Errorf("what-if %s: %w", w, err)
		}
		r.WhatIf = append(r.WhatIf, *ch)
	}
	return r, nil
}

// stage holds the model of the moment with the step on it.
type stage struct {
	c    *Capture
	o    *Options
	load Loader

	options  glm5.Options
	ranks    int
	compact  bool
	restored *restored
}

// set loads the model with some options, unless it is there.
func (st *stage) set(o glm5.Options, ranks int, compact bool) (*restored, error) {
	if n := st.o.PoolTokens; n > 0 {
		o.Pages = (n + kernels.PageTokens - 1) / kernels.PageTokens
	}
	if st.restored != nil && o == st.options && ranks == st.ranks && compact == st.compact {
		return st.restored, nil
	}
	st.restored = nil
	m, err := st.load(o, ranks)
	if err != nil {
		return nil, err
	}
	s, err := restore(st.c, m, compact)
	if err != nil {
		return nil, err
	}
	s.stop = st.o.Stop
	st.options, st.ranks, st.compact, st.restored = o, ranks, compact, s
	return s, nil
}

// measure runs a list in place.
func (st *stage) measure(s *restored, calls []kernels.Call, name string) (f Figures, err error) {
	if f.Rows, err = s.inPlace(calls, st.o.Warmup, st.o.Repeat, s.ahead()); err != nil {
		return f, err
	}
	return st.figures(name, f.Rows), nil
}

// figures attributes a timeline.
func (st *stage) figures(name string, rows []datasets.Span) Figures {
	f := Figures{Name: name, Rows: rows}
	f.Report = reportOf(name, rows, report.Options{By: st.o.By, Machine: st.o.Machine})
	f.Wall = f.Report.Sections[0].WallOf
	return f
}

const (
	aloneRepeats = 5              // of a call alone
	marginPairs  = 15             // most runs of the step with and without a class
	marginBudget = 20_000_000_000 // ns for all classes
)

// apart runs the calls of a step alone and leaves its classes out.
func (st *stage) apart(s *restored, f *Figures) (err error) {
	var gains map[string]attribute.Stat
	if !st.o.NoAlone {
		if f.alone, err = s.isolated(s.calls, min(aloneRepeats, st.o.Repeat), st.o.Evict); err != nil {
			return err
		}
		f.Coverage = coverage(f.alone, f.Wall.Median)
	}
	if !st.o.NoMarginal && !st.c.Unended() { // without its choices, classes cannot be left out
		if gains, err = s.marginal(s.calls, min(st.o.Repeat, pairs(f.Wall.Median, len(classes(s.calls))))); err != nil {
			return err
		}
	}
	if f.alone != nil || gains != nil {
		f.Report.Isolated = []report.Isolation{isolation(st.c.Kind, f.Report, s.calls, f.alone, gains, st.o.Machine)}
	}
	return nil
}

// change measures the step with one change, and the step that it is compared
// with, which is the captured one unless the change needs another cache.
func (st *stage) change(w WhatIf, base *Figures, tokens []int32) (*Change, error) {
	ch := &Change{Figures: Figures{Name: w.String()}, Tokens: len(tokens)}
	switch {
	case w.Name == "scale":
		ch.Figures = st.figures(ch.Name, scaled(base.Rows, w.Value, w.Factor))
		ch.Note = "the recorded spans swept again; nothing was run"
		return ch, ch.compare(base)
	case w.casts():
		return ch, st.cast(ch, w, base, tokens)
	}
	o, ranks := w.changed(st.c.Options, st.c.Ranks)
	s, err := st.set(o, ranks, st.o.PoolTokens > 0)
	if err != nil {
		return nil, err
	}
	calls := s.calls
	if w.Name == "drop" {
		if calls, err = s.pin(calls); err != nil {
			return nil, err
		}
		if calls = without(calls, w.Value); len(calls) == 0 || len(calls) == len(s.calls) {
			return nil, fmt.Errorf("the step has no calls of class %s, or no others", w.Value)
		}
		ch.Note = "without the class's calls the outputs are not the model's; routing and selections are the capture's"
	}
	if ch.Figures, err = st.measure(s, calls, ch.Name); err != nil {
		return nil, err
	}
	ch.count(s, tokens)
	return ch, ch.compare(base)
}

// cast measures the step with copies of the cache, against the step over the same
// cache read in place.
func (st *stage) cast(ch *Change, w WhatIf, base *Figures, tokens []int32) error {
	o, ranks := w.changed(st.c.Options, st.c.Ranks)
	s, err := st.set(o, ranks, st.o.PoolTokens > 0 || w.Value == CastActive)
	if err != nil {
		return err
	}
	if o.KVCache != st.c.Options.KVCache {
		ch.Note = fmt.Sprintf("both sides with the cache as %s: only that is ever copied to BF16", o.KVCache)
		own, err := st.measure(s, s.calls, "in place, kv-cache="+string(o.KVCache))
		if err != nil {
			return err
		}
		if !st.o.NoAlone {
			if own.alone, err = s.isolated(s.calls, min(aloneRepeats, st.o.Repeat), 0); err != nil {
				return err
			}
		}
		base = &own
	}
	calls, err := s.withCast(s.calls, s.slots(w.Value))
	if err != nil {
		return err
	}
	if ch.Figures, err = st.measure(s, calls, ch.Name); err != nil {
		return err
	}
	if w.Value == CastActive {
		for i := range ch.Report.Findings {
			ch.Report.Findings[i].Text = strings.Replace(ch.Report.Findings[i].Text, "the whole pool",
				"the batch's pages", 1)
		}
	}
	ch.count(s, tokens)
	return ch.compare(base)
}

package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda"
	"glmbatch/replay/report"
	"glmbatch/units"
)

// The check of --check-stamps: kernels' stamps against CUPTI's records of the
// same steps. What is compared:
//
//   - a kernel's time. A kernel that is launched before those that it waits for have
//     ended counts from their end to its own: CUPTI does not see when it could begin,
//     and takes what the stamps call the gap before it as the kernel's. Others count
//     from their start. CUPTI knows launches only, so calls that share one are compared
//     together, by the name of the one that ends last. The bound is for launches that had
//     the GPU to themselves.
//   - a step's time on the GPU: from the first begin to the last end.
//   - the clocks: CUPTI puts the GPU's on the host's by readings of its own.
type stampCheck struct {
	CUPTI   uint32       `json:"cupti_version"`
	Steps   int          `json:"steps"`
	Kernel  difference   `json:"kernel"` // of all
	Alone   difference   `json:"alone"`  // of launches that had the GPU to themselves
	Kernels []kernelDiff `json:"kernels"`
	Classes []kernelDiff `json:"classes"`
	Step    difference   `json:"step"`       // ns
	Share   float64      `json:"step_share"` // of the step's time: the largest difference
	Stamped int64        `json:"step_ns"`    // median by stamps
	Seen    int64        `json:"cupti_step_ns"`
	Clock   difference   `json:"clock"`                 // CUPTI's end of a step less the stamps', on the host's clock
	Without int64        `json:"step_without_cupti_ns"` // by stamps
}

// difference is the quantiles of |CUPTI - stamps| in ns; Median keeps its sign.
type difference struct {
	N      int   `json:"n"`
	Median int64 `json:"median_ns"`
	P95    int64 `json:"p95_ns"`
	Worst  int64 `json:"worst_ns"`
}

func differenceOf(ns []int64) difference {
	if len(ns) == 0 {
		return difference{}
	}
	v := slices.Sorted(slices.Values(ns))
	d := difference{N: len(v), Median: v[len(v)/2]}
	for i := range v {
		v[i] = max(v[i], -v[i])
	}
	slices.Sort(v)
	d.P95, d.Worst = v[(len(v)-1)*95/100], v[len(v)-1]
	return d
}

// kernelDiff is the difference of a kernel, or of a class of them.
type kernelDiff struct {
	Name    string `json:"name"`
	Class   string `json:"class"`
	Stamped int64  `json:"stamped_ns"` // medians
	Seen    int64  `json:"cupti_ns"`
	difference
}

// The bounds that stamps must keep.
const (
	stampKernelNS = 2000
	stampStep     = .01
	stampNear     = 16 // launches of the list that may run beside one
	stampWarmup   = 3  // steps under CUPTI before: the graph is made in the second
)

// compared are the times of one kernel or class in all steps.
type compared struct{ stamped, seen, diff []int64 }

func (c *compared) add(stamped, seen int64) {
	c.stamped, c.seen, c.diff = append(c.stamped, stamped), append(c.seen, seen), append(c.diff, seen-stamped)
}

// stampSteps collects what single steps compare.
type stampSteps struct {
	all, alone, step compared
	kernel           map[string]*compared
	class            map[string]*compared
	classOf          map[string]string
	clock            []int64
}

func newStampSteps() *stampSteps {
	return &stampSteps{kernel: map[string]*compared{}, class: map[string]*compared{}, classOf: map[string]string{}}
}

// add takes in a step: its calls, the stamps and what CUPTI saw, of one rank.
func (s *stampSteps) add(calls []kernels.Call, spans []kernels.Span, seen []cuda.ProfiledCall) error {
	if len(seen) != len(calls) || len(spans) != len(calls) {
		return fmt.Errorf("%d calls, %d with stamps, %d seen by CUPTI", len(calls), len(spans), len(seen))
	}
	list := launchesOf(spans, seen)
	var from, to, cFrom, cTo int64
	any := false
	for l, x := range list {
		if x.kernels == 0 {
			continue
		}
		stamped := x.to - x.from
		if x.after >= 0 {
			stamped = x.to - list[x.after].to
		}
		class, name := "", string(calls[x.last].Kernel)
		if k := kernels.Lookup(calls[x.last].Kernel); k != nil {
			class = string(k.Class)
		}
		for _, m := range []struct {
			of  map[string]*compared
			key string
		}{{s.kernel, name}, {s.class, class}} {
			if m.of[m.key] == nil {
				m.of[m.key] = &compared{}
			}
			m.of[m.key].add(stamped, x.end-x.ready)
		}
		s.classOf[name] = class
		s.all.add(stamped, x.end-x.ready)
		if !shares(list, l) {
			s.alone.add(stamped, x.end-x.ready)
		}
		if !any {
			from, cFrom, any = x.from, x.ready, true
		}
		from, to, cFrom, cTo = min(from, x.from), max(to, x.to), min(cFrom, x.ready), max(cTo, x.end)
	}
	if !any {
		return errors.New("CUPTI saw no kernel of the step")
	}
	s.step.add(to-from, cTo-cFrom)
	s.clock = append(s.clock, cTo-to)
	return nil
}

func (s *stampSteps) check() *stampCheck {
	c := &stampCheck{Steps: len(s.step.diff), Kernel: differenceOf(s.all.diff), Alone: differenceOf(s.alone.diff),
		Step: differenceOf(s.step.diff), Clock: differenceOf(s.clock),
		Stamped: medianOf(s.step.stamped), Seen: medianOf(s.step.seen)}
	for i, d := range s.step.diff {
		c.Share = max(c.Share, float64(max(d, -d))/float64(max(s.step.seen[i], 1)))
	}
	rows := func(of map[string]*compared, class func(string) string) []kernelDiff {
		var out []kernelDiff
		for name, v := range of {
			out = append(out, kernelDiff{name, class(name), medianOf(v.stamped), medianOf(v.seen),
				differenceOf(v.diff)})
		}
		slices.SortFunc(out, func(a, b kernelDiff) int {
			return cmp.Or(-cmp.Compare(a.P95, b.P95), cmp.Compare(a.Name, b.Name))
		})
		return out
	}
	c.Kernels = rows(s.kernel, func(n string) string { return s.classOf[n] })
	c.Classes = rows(s.class, func(n string) string { return n })
	return c
}

func medianOf(ns []int64) int64 { return TimesOf(ns).Median }

// stampLaunch is the calls that share a launch: their stamps, and what CUPTI saw.
type stampLaunch struct {
	kernels, last, after int   // last: the call that ends last; after: a launch, as of [cuda.ProfiledCall]
	from, to             int64 // by stamps
	ready, end           int64 // for CUPTI
}

// launchesOf brings together the calls of each launch.
func launchesOf(spans []kernels.Span, seen []cuda.ProfiledCall) []stampLaunch {
	var out []stampLaunch
	for i, p := range seen {
		for len(out) <= p.Launch {
			out = append(out, stampLaunch{after: -1})
		}
		x, sp := &out[p.Launch], spans[i]
		if p.Kernels == 0 {
			x.to = max(x.to, sp.End)
			continue
		}
		if x.kernels == 0 {
			x.last, x.after, x.from, x.ready = i, p.After, sp.Start, p.Ready
		}
		x.kernels += p.Kernels
		if sp.End > x.to {
			x.last = i
		}
		x.from, x.to = min(x.from, sp.Start), max(x.to, sp.End)
		x.ready, x.end = min(x.ready, p.Ready), max(x.end, p.End)
	}
	return out
}

// shares says whether another launch was on the GPU while launch l was, on another lane.
// Then the blocks of one may wait until those of the other make room, which is after
// CUPTI's start and before the first stamp.
func shares(list []stampLaunch, l int) bool {
	for _, by := range []int{-1, 1} { // neighbours in the list are neighbours in time
		for j, far := l+by, 0; j >= 0 && j < len(list) && far < stampNear; j, far = j+by, far+1 {
			if list[j].kernels > 0 && list[j].ready < list[l].end && list[j].end > list[l].ready {
				return true
			}
		}
	}
	return false
}

// holds says whether stamps and CUPTI agree as they should.
func (c *stampCheck) holds() bool { return c.Alone.P95 <= stampKernelNS && c.Share <= stampStep }

// checkStamps runs steps of a case again, with CUPTI on.
func (b *Bench) checkStamps(ctx context.Context, r *Result) (err error) {
	p := b.o.Profiler
	if p == nil || r.Skipped != "" || r.of.prefill {
		return nil
	}
	if err := b.setPages(r); err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(b.o.Seed, 0x7374616d70))
	flow := b.flow(r)
	step := func() (kernels.Trace, error) {
		if err := context.Cause(ctx); err != nil {
			return kernels.Trace{}, interrupted(err)
		}
		in := b.batches(r.of, rng)[0]
		t, err := flow.step(&in)
		if err != nil {
			return t, device(fmt.Errorf("%v: %w", r.of, err))
		}
		return t, nil
	}
	steps := min(b.o.Steps, 20)
	var alone []int64
	for range steps {
		t, err := step()
		if err != nil {
			return err
		}
		busy, _ := t.Busy()
		alone = append(alone, busy.NS())
	}
	if err := p.Start(); err != nil {
		return device(err)
	}
	defer func() { err = errors.Join(err, device(p.Stop())) }()
	s := newStampSteps()
	for i := range stampWarmup + steps {
		t, err := step()
		if err != nil {
			return err
		}
		seen, err := p.Calls()
		if err == nil && i >= stampWarmup {
			err = s.add(t.Calls, t.Spans[0], seen)
		}
		if err != nil {
			return fmt.Errorf("%v: %w", r.of, err)
		}
	}
	r.Stamps = s.check()
	r.Stamps.CUPTI, r.Stamps.Without = p.Version(), medianOf(alone)
	return nil
}

// print writes the comparison.
func (c *stampCheck) print(s *strings.Builder, of Case) {
	us := func(ns int64) string { return fmt.Sprintf("%.2f", float64(ns)/1e3) }
	fmt.Fprintf(s, "\nstamps and CUPTI: %v, %d steps\n", of, c.Steps)
	const form = "  %-22s%9s%11s%10s%10s%9s%9s\n"
	fmt.Fprintf(s, form, "", "calls", "stamps us", "CUPTI us", "differ", "p95", "worst")
	for _, rows := range [][]kernelDiff{c.Classes, c.Kernels} {
		for _, k := range rows {
			fmt.Fprintf(s, form, k.Name, units.Digits(int64(k.N)), us(k.Stamped), us(k.Seen), us(k.Median),
				us(k.P95), us(k.Worst))
		}
		s.WriteByte('\n')
	}
	verdict := "they agree"
	if !c.holds() {
		verdict = "they do not agree"
	}
	report.Wrap(s,
		fmt.Sprintf("%s: the time of a kernel alone on the GPU differs by %s us in the median, %s at p95, %s at "+
			"worst (bound %s at p95), that of any by %s, %s and %s; a step takes %s us by stamps, %s by CUPTI, at "+
			"worst %.2f %% apart (bound %.0f %%), and %s without CUPTI; the clocks differ by %s us (%s at worst)",
			verdict, us(c.Alone.Median), us(c.Alone.P95), us(c.Alone.Worst), us(stampKernelNS), us(c.Kernel.Median),
			us(c.Kernel.P95), us(c.Kernel.Worst), us(c.Stamped), us(c.Seen), 100*c.Share, 100*stampStep, us(c.Without),
			us(c.Clock.Median), us(c.Clock.Worst)), report.DefaultWidth)
}

// stampsHold is an error where a case's stamps and CUPTI do not agree.
func (b *Bench) stampsHold() error {
	for i := range b.results {
		if c := b.results[i].Stamps; c != nil && !c.holds() {
			return fmt.Errorf("%v: stamps and CUPTI do not agree: see the comparison", b.results[i].of)
		}
	}
	return nil
}

package replay

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"glmbatch/datasets"
	"glmbatch/replay/attribute"
	"glmbatch/replay/report"
)

// What a recorded step's time differs by from the repeats', in a word.
const (
	CauseNone   = "none"   // it took as long as the repeats do
	CauseShort  = "short"  // it took less
	CauseHost   = "host"   // most of the difference is time in which the device idled
	CauseSlow   = "slow"   // all calls alike took longer
	CauseStall  = "stall"  // few calls took longer by far
	CauseSpread = "spread" // neither
)

// Bounds of what counts as one of them.
const (
	sameWall   = 0.05 // of the median: less is no difference
	mostOfIt   = 0.5  // of the difference
	fewOfCalls = 0.05 // of the calls: so many at most are few
)

// again sets the recorded step beside the repeats; nil: the capture has no spans.
func (r *Result) again() *report.Again {
	rows := r.Capture.Timeline()
	if rows == nil {
		return nil
	}
	was := reportOf("recorded", rows, report.Options{})
	if len(was.Sections) != 1 {
		return nil
	}
	repeats := reportOf("again", r.Rows, report.Options{})
	d := &beside{now: &repeats.Sections[0], a: report.AgainOf(&was.Sections[0], &repeats.Sections[0]),
		calls: callTimes(rows, r.Rows)}
	d.a.Cause, d.a.Text = d.explain()
	if evidence := conditions(r.Capture.Conditions, r.Conditions, d.a.Cause); evidence != "" {
		d.a.Text += "; " + evidence
	}
	return d.a
}

// beside is a recorded step against its repeats.
type beside struct {
	now   *attribute.Section
	a     *report.Again
	calls []callTime
}

// callTime is what a call took: the mean over its ranks, in ns.
type callTime struct {
	name          string
	layer         int32
	recorded, now int64 // now: the median of the repeats
}

func (c *callTime) excess() int64 { return c.recorded - c.now }

func (c *callTime) String() string {
	if c.layer < 0 {
		return c.name
	}
	return fmt.Sprintf("%s of layer %d", c.name, c.layer)
}

// explain says which of the causes it is, from what was measured alone.
func (d *beside) explain() (cause, text string) {
	w := d.a.Wall
	by := w.Recorded - w.Median
	least, most := slices.Min(d.now.Walls), slices.Max(d.now.Walls)
	text = fmt.Sprintf("recorded %s ms, again %s ms", ms(w.Recorded), ms(w.Median))
	switch {
	case abs(by) <= int64(sameWall*float64(w.Median)):
		return CauseNone, text + ": no difference to explain"
	case w.Recorded >= least && w.Recorded <= most:
		return CauseNone, fmt.Sprintf("%s, %s to %s: the step took what it takes now and then", text, ms(least),
			ms(most))
	case by < 0:
		return CauseShort, fmt.Sprintf("%s: the repeats are what took longer, %s", text, d.widest(-1))
	}
	if idle, phase := d.idle(); idle >= int64(mostOfIt*float64(by)) {
		return CauseHost, fmt.Sprintf("%s: for %s ms more than in the repeats the device idled, most of it in %s: "+
			"the host held the step up, not a kernel", text, ms(idle), phase)
	}
	typical := d.typical()
	var all, alike int64
	for i := range d.calls {
		all += d.calls[i].excess()
		alike += int64((typical - 1) * float64(d.calls[i].now))
	}
	if all <= 0 {
		return CauseSpread, text + ": " + d.widest(1)
	}
	if alike >= int64(mostOfIt*float64(all)) {
		return CauseSlow, fmt.Sprintf("%s: half of the time ran %.2f times as long or more, %s: the whole step ran "+
			"slower, no call stalled", text, typical, d.factors())
	}
	if few, part := d.few(typical, all); few != nil {
		return CauseStall, fmt.Sprintf("%s: a stall: %s, which is %s of the difference; the other calls took %.2f "+
			"times as long as again", text, strings.Join(few, " and "), percent(part), typical)
	}
	return CauseSpread, text + ": " + d.widest(1)
}

// idle is how much longer the device idled, and the gap that most of it is.
func (d *beside) idle() (ns int64, most string) {
	largest := int64(0)
	for _, r := range d.a.Rows {
		if slices.ContainsFunc(d.now.Classes, func(c attribute.Row) bool { return c.Label == r.Label }) ||
			r.Label == attribute.Overlap.String() {
			continue
		}
		by := r.Recorded - r.Median
		if strings.HasPrefix(r.Label, "gap.") || r.Label == attribute.Unexplained.String() {
			ns += by
			if by > largest {
				largest, most = by, r.Label
			}
		}
	}
	return ns, most
}

// typical is by what factor the calls took longer: the median, each call counting as
// much as it takes in the repeats.
func (d *beside) typical() float64 {
	type ratio struct {
		r float64
		w int64
	}
	var list []ratio
	var all int64
	for _, c := range d.calls {
		if c.now > 0 {
			list = append(list, ratio{float64(c.recorded) / float64(c.now), c.now})
			all += c.now
		}
	}
	slices.SortFunc(list, func(a, b ratio) int { return cmp.Compare(a.r, b.r) })
	var below int64
	for _, x := range list {
		if below += x.w; 2*below >= all {
			return x.r
		}
	}
	return 1
}

// few names the calls that make most of the difference, if they are few: those that took
// much longer than the others did. part is theirs of the difference.
func (d *beside) few(typical float64, all int64) (names []string, part float64) {
	over := func(c *callTime) int64 { return c.recorded - int64(typical*float64(c.now)) }
	sorted := slices.Clone(d.calls)
	slices.SortStableFunc(sorted, func(a, b callTime) int { return cmp.Compare(over(&b), over(&a)) })
	var sum int64
	most := max(1, int(fewOfCalls*float64(len(sorted))))
	for i := range sorted[:min(most, len(sorted))] {
		c := &sorted[i]
		if sum += c.excess(); len(names) < 3 {
			names = append(names, fmt.Sprintf("%s took %s ms, %s ms again", c, ms(c.recorded), ms(c.now)))
		}
		if float64(sum) >= mostOfIt*float64(all) {
			if more := i + 1 - len(names); more > 0 {
				names = append(names, fmt.Sprintf("%d more calls like them", more))
			}
			return names, float64(sum) / float64(all)
		}
	}
	return nil, 0
}

// widest names the class or gap that changed most in a direction, and by how much.
func (d *beside) widest(sign int64) string {
	r := slices.MaxFunc(d.a.Rows, func(a, b report.AgainRow) int {
		return cmp.Compare(sign*(a.Recorded-a.Median), sign*(b.Recorded-b.Median))
	})
	return fmt.Sprintf("most of it %s (%s ms recorded, %s ms again)", r.Label, ms(r.Recorded), ms(r.Median))
}

// factors says by which factors the classes that count took longer.
func (d *beside) factors() string {
	least, most := report.AgainRow{}, report.AgainRow{}
	factor := func(r *report.AgainRow) float64 { return float64(r.Recorded) / float64(max(1, r.Median)) }
	for _, r := range d.a.Rows {
		class := slices.ContainsFunc(d.now.Classes, func(c attribute.Row) bool { return c.Label == r.Label })
		if !class || r.Median*20 < d.a.Wall.Median {
			continue
		}
		if least.Label == "" || factor(&r) < factor(&least) {
			least = r
		}
		if most.Label == "" || factor(&r) > factor(&most) {
			most = r
		}
	}
	if least.Label == most.Label {
		return "by class alike"
	}
	return fmt.Sprintf("by class from %.2f (%s) to %.2f (%s) times", factor(&least), least.Label, factor(&most),
		most.Label)
}

// callTimes pairs the calls of a recorded step with those of its repeats.
func callTimes(recorded, repeats []datasets.Span) []callTime {
	type sum struct {
		ns, n int64
		span  *datasets.Span
	}
	sums := func(rows []datasets.Span) map[[2]int64]*sum {
		m := map[[2]int64]*sum{}
		for i := range rows {
			s := &rows[i]
			if s.Call < 0 {
				continue
			}
			key := [2]int64{s.Step, int64(s.Call)}
			if m[key] == nil {
				m[key] = &sum{span: s}
			}
			m[key].ns += s.EndNS - s.StartNS
			m[key].n++
		}
		return m
	}
	now := map[int32][]int64{}
	for _, s := range sums(repeats) {
		now[s.span.Call] = append(now[s.span.Call], s.ns/s.n)
	}
	var list []callTime
	was := sums(recorded)
	for _, s := range was {
		list = append(list, callTime{s.span.Kernel, s.span.Layer, s.ns / s.n,
			attribute.MedianOf(now[s.span.Call]).Median})
	}
	slices.SortFunc(list, func(a, b callTime) int {
		return cmp.Or(cmp.Compare(a.layer, b.layer), cmp.Compare(a.name, b.name), cmp.Compare(b.recorded, a.recorded))
	})
	return list
}

func abs(n int64) int64 { return max(n, -n) }

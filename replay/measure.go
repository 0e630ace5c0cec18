package replay

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"glmbatch/datasets"
	"glmbatch/kernels"
	"glmbatch/kernels/roofline"
	"glmbatch/replay/attribute"
	"glmbatch/replay/report"
	"glmbatch/replay/timeline"
)

func (s *restored) spans(n int) [][]kernels.Span {
	spans := make([][]kernels.Span, s.m.Group().Ranks())
	for r := range spans {
		spans[r] = make([]kernels.Span, n)
	}
	return spans
}

// reportOf attributes a timeline.
func reportOf(source string, rows []datasets.Span, opt report.Options) *report.Report {
	var names datasets.Names
	events := timeline.Events(rows, &names)
	a := attribute.New(&names, attribute.Options{By: opt.By, Machine: opt.Machine})
	for _, step := range slices.Sorted(maps.Keys(events)) {
		a.Step(step, events[step])
	}
	r := report.New(source, a, opt)
	r.Rows = int64(len(rows))
	return r
}

// alone is what one call takes by itself, in ns: the mean over its ranks of the
// median over repeats.
type alone struct{ warm, cold int64 }

// isolated runs each call by itself, on the inputs that it has in the step: warm
// so many times in a row, cold with the caches emptied before each.
func (s *restored) isolated(calls []kernels.Call, repeat int, evict int64) ([]alone, error) {
	g := s.m.Group()
	flush, err := newFlusher(g, evict)
	if err != nil {
		return nil, err
	}
	if err := s.m.Upload(&s.batch); err != nil {
		return nil, err
	}
	all := make([]alone, len(calls))
	row, one := s.spans(repeat+1), s.spans(1)
	for i := range calls {
		if err := s.stopped(); err != nil {
			return nil, err
		}
		undo, err := s.saved(&calls[i])
		if err != nil {
			return nil, err
		}
		var warm, cold []int64
		// The first of the row wakes the threads and warms the cache.
		if calls[i].Kernel != "feed" {
			if err := g.Run(slices.Repeat(calls[i:i+1], repeat+1), row); err != nil {
				return nil, err
			}
			for n := range repeat {
				warm = append(warm, meanOf(row, n+1))
			}
		}
		for calls[i].Kernel == "feed" && len(warm) < repeat { // a row of it would leave the context
			if err := errors.Join(g.Run(calls[i:i+1], one), undo()); err != nil {
				return nil, err
			}
			warm = append(warm, meanOf(one, 0))
		}
		for range flush.repeats(repeat) {
			if err := errors.Join(undo(), flush.do()); err != nil {
				return nil, err
			}
			if err := g.Run(calls[i:i+1], one); err != nil {
				return nil, err
			}
			cold = append(cold, meanOf(one, 0))
		}
		if flush.repeats(repeat) == 0 { // what comes next reads what one run leaves
			if err := errors.Join(undo(), g.Run(calls[i:i+1], nil)); err != nil {
				return nil, err
			}
		}
		all[i] = alone{attribute.MedianOf(warm).Median, attribute.MedianOf(cold).Median}
	}
	return all, nil
}

// meanOf is the mean over the ranks of the time of call i.
func meanOf(spans [][]kernels.Span, i int) int64 {
	total := int64(0)
	for r := range spans {
		total += spans[r][i].End - spans[r][i].Start
	}
	return total / int64(len(spans))
}

// saved reads what a call changes in place and returns what puts it back, so that
// the call can be repeated.
func (s *restored) saved(c *kernels.Call) (undo func() error, err error) {
	type copyOf struct {
		rank int
		b    kernels.Buffer
		data []byte
	}
	var copies []copyOf
	g := s.m.Group()
	for j, a := range kernels.Lookup(c.Kernel).Args {
		if a.Role != kernels.InOut || a.Name == "cache" || c.Args[j].Index == 0 || c.Args[j].Pitch != 0 {
			continue
		}
		b := c.Args[j]
		if a.Len != nil {
			b.Len = min(b.Len, a.Len(c.Dims)*4)
		}
		for rank := range g.Ranks() {
			data := make([]byte, b.Len)
			if err := g.Download(rank, data, b); err != nil {
				return nil, err
			}
			copies = append(copies, copyOf{rank, b, data})
		}
	}
	return func() error {
		for _, k := range copies {
			if err := g.UploadTo(k.rank, k.b, k.data); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// pairs is how often the step is run with and without a class: as often as
// marginBudget allows, so that large steps do not take for ever.
func pairs(wall int64, classes int) int {
	each := max(1, 2*wall*int64(max(1, classes)))
	return int(min(marginPairs, max(3, marginBudget/each)))
}

// marginal says by class how much shorter the step is without it: it runs the
// whole list and the list without the class in turn. Routing and
// selections are those of the capture in both.
func (s *restored) marginal(calls []kernels.Call, repeat int) (map[string]attribute.Stat, error) {
	pinned, err := s.pin(calls)
	if err != nil {
		return nil, err
	}
	all := map[string]attribute.Stat{}
	for _, class := range classes(calls) {
		less := without(pinned, class)
		if len(less) == 0 {
			continue
		}
		var gains []int64
		for i := range repeat + 1 {
			full, err := s.timed(pinned)
			if err != nil {
				return nil, err
			}
			part, err := s.timed(less)
			if err != nil {
				return nil, err
			}
			if i > 0 {
				gains = append(gains, full-part)
			}
		}
		all[class] = attribute.MedianOf(gains)
	}
	// What the lists without a class left is no outcome: run the step once more.
	_, err = s.timed(calls)
	return all, err
}

// timed returns the wall time of a list.
func (s *restored) timed(calls []kernels.Call) (int64, error) {
	if err := s.stopped(); err != nil {
		return 0, err
	}
	x, err := s.once(calls)
	return x.Times.Wall.NS(), err
}

// classes lists the classes of a list, in the table's order.
func classes(calls []kernels.Call) []string {
	var names []string
	for i := range kernels.Table {
		k := &kernels.Table[i]
		if !slices.Contains(names, string(k.Class)) &&
			slices.ContainsFunc(calls, func(c kernels.Call) bool { return classOf(&c) == string(k.Class) }) {
			names = append(names, string(k.Class))
		}
	}
	return names
}

func classOf(c *kernels.Call) string { return string(kernels.Lookup(c.Kernel).Class) }

func without(calls []kernels.Call, class string) []kernels.Call {
	var less []kernels.Call
	for _, c := range calls {
		if classOf(&c) != class || c.Kernel == "feed" || c.Kernel == "accept" { // what follows works where they say
			less = append(less, c)
		}
	}
	return less
}

// isolation puts the figures of each class beside each other.
func isolation(kind string, r *report.Report, calls []kernels.Call, each []alone, gains map[string]attribute.Stat,
	m *roofline.Machine) report.Isolation {
	sec := &r.Sections[0]
	iso := report.Isolation{Kind: kind, Wall: sec.WallOf.Median}
	rows := map[string]*report.IsolatedRow{}
	for i := range sec.Classes {
		c := &sec.Classes[i]
		rows[c.Class] = &report.IsolatedRow{Label: c.Class, InPlace: c.PerStep.Median,
			Calls: c.Calls / max(1, sec.RankSteps)}
		if m != nil {
			rows[c.Class].Bound = c.Bound / max(1, sec.RankSteps)
		}
	}
	for i := range each {
		if x := rows[classOf(&calls[i])]; x != nil {
			x.Warm += each[i].warm
			x.Cold += each[i].cold
		}
	}
	for class, g := range gains {
		if x := rows[class]; x != nil {
			x.Marginal, x.MarginalLo, x.MarginalHi = g.Median, g.Lo, g.Hi
		}
	}
	for _, x := range rows {
		iso.Rows = append(iso.Rows, *x)
	}
	slices.SortFunc(iso.Rows, func(a, b report.IsolatedRow) int {
		return cmp.Or(cmp.Compare(b.InPlace, a.InPlace), cmp.Compare(a.Label, b.Label))
	})
	return iso
}

// Coverage is the part of a step's wall time that the calls alone add up to.
type Coverage struct {
	Warm float64 `json:"warm"`
	Cold float64 `json:"cold"`
}

func coverage(each []alone, wall int64) *Coverage {
	if wall <= 0 || len(each) == 0 {
		return nil
	}
	var c Coverage
	for _, a := range each {
		c.Warm += float64(a.warm) / float64(wall)
		c.Cold += float64(a.cold) / float64(wall)
	}
	return &c
}

func percent(f float64) string { return fmt.Sprintf("%.0f %%", 100*f) }

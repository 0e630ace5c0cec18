package report

import "fmt"

// Isolation compares the classes of a step in place with their calls alone.
type Isolation struct {
	Kind string        `json:"kind"` // "": of any kind
	Wall int64         `json:"wall_ns"`
	Rows []IsolatedRow `json:"rows"`
}

// IsolatedRow is a class of an [Isolation]. Times are of one step on one rank, in
// ns; 0: not measured.
type IsolatedRow struct {
	Label      string `json:"label"`
	Calls      int64  `json:"calls"`
	InPlace    int64  `json:"in_place_ns"`
	Warm       int64  `json:"warm_ns"`     // alone, with a warm cache
	Cold       int64  `json:"cold_ns"`     // alone, with a cold cache
	Marginal   int64  `json:"marginal_ns"` // how much shorter the step is without the class
	MarginalLo int64  `json:"marginal_lo_ns"`
	MarginalHi int64  `json:"marginal_hi_ns"` // with MarginalLo, the 95 % interval
	Bound      int64  `json:"bound_ns"`
}

// sums adds up the rows.
func (i *Isolation) sums() IsolatedRow {
	var t IsolatedRow
	for _, r := range i.Rows {
		t.Calls += r.Calls
		t.InPlace += r.InPlace
		t.Warm += r.Warm
		t.Cold += r.Cold
		t.Bound += r.Bound
	}
	return t
}

// table has the four figures of each class, and what part of the step the calls
// alone explain. What the step would be shorter by does not add up.
func (i *Isolation) table() table {
	t := table{head: []string{"class", "calls", "in place", "warm", "cold", "without it", "95 % of it", "bound"}}
	cell := func(ns int64) string {
		if ns == 0 {
			return ""
		}
		return ms(float64(ns))
	}
	for _, r := range i.Rows {
		interval := ""
		if r.Marginal != 0 {
			interval = ms(float64(r.MarginalLo)) + "–" + ms(float64(r.MarginalHi))
		}
		t.add(r.Label, count(float64(r.Calls)), cell(r.InPlace), cell(r.Warm), cell(r.Cold), cell(r.Marginal), interval,
			cell(r.Bound))
	}
	s := i.sums()
	t.rule()
	t.add("sum", count(float64(s.Calls)), cell(s.InPlace), cell(s.Warm), cell(s.Cold), "", "", cell(s.Bound))
	part := func(ns int64) string {
		if ns == 0 {
			return ""
		}
		return percentCell(share(ns, i.Wall))
	}
	t.add("of the wall", "", part(s.InPlace), part(s.Warm), part(s.Cold), "", "", part(s.Bound))
	return t
}

func isolatedTitle(i *Isolation) string {
	kind := i.Kind
	if kind == "" {
		kind = "step"
	}
	return fmt.Sprintf("%s: classes in place, alone with a warm and a cold cache, and left out (ms a step)", kind)
}

// csvRows has a line for each figure: by says which.
func (i *Isolation) csvRows(t *csvTable) {
	for _, r := range i.Rows {
		for _, f := range []struct {
			by         string
			ns, lo, hi int64
		}{{"alone_warm", r.Warm, r.Warm, r.Warm}, {"alone_cold", r.Cold, r.Cold, r.Cold},
			{"without", r.Marginal, r.MarginalLo, r.MarginalHi}} {
			if f.ns != 0 {
				t.row("alone", cells{"kind": i.Kind, "by": f.by, "label": r.Label, "class": r.Label, "calls": r.Calls,
					"total_ns": f.ns, "bound_ns": r.Bound,
					"median_ns": f.ns, "lo_ns": f.lo, "hi_ns": f.hi})
			}
		}
	}
}

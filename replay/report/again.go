package report

import (
	"fmt"
	"slices"

	"glmbatch/replay/attribute"
)

// Again sets a step as it was recorded beside the same step run again.
type Again struct {
	Kind  string     `json:"kind"`
	Rows  []AgainRow `json:"rows"` // the classes, then the rest of the ledger
	Wall  AgainRow   `json:"wall"`
	Cause string     `json:"cause"` // a word that stays: see the replay's findings
	Text  string     `json:"text"`  // and a sentence
}

// AgainRow is a class or a gap, in ns of one step: the mean over its ranks.
type AgainRow struct {
	Label    string `json:"label"`
	Recorded int64  `json:"recorded_ns"`
	Median   int64  `json:"median_ns"` // of the repeats
	Lo       int64  `json:"lo_ns"`     // with Hi, the 95 % interval of the median
	Hi       int64  `json:"hi_ns"`
}

// AgainOf compares a recorded step with repeats of it.
func AgainOf(recorded, repeats *attribute.Section) *Again {
	a := &Again{Kind: repeats.Kind}
	entries := map[string]attribute.Amount{}
	for _, e := range recorded.Ledger {
		entries[e.Name] = e
	}
	row := func(name string, was int64, s attribute.Stat) AgainRow {
		return AgainRow{name, was, s.Median, s.Lo, s.Hi}
	}
	for _, e := range repeats.Ledger {
		was := entries[e.Name].NS / max(1, recorded.RankSteps)
		delete(entries, e.Name)
		if was != 0 || e.NS != 0 {
			a.Rows = append(a.Rows, row(e.Name, was, e.PerStep))
		}
	}
	for _, e := range recorded.Ledger { // what no repeat had
		if _, left := entries[e.Name]; left && e.NS != 0 {
			a.Rows = append(a.Rows, row(e.Name, e.NS/max(1, recorded.RankSteps), attribute.Stat{}))
		}
	}
	a.Wall = row("wall", recorded.Wall/max(1, recorded.RankSteps), repeats.WallOf)
	return a
}

func (a *Again) title() string { return fmt.Sprintf("%s: as recorded, and run again (ms)", a.Kind) }

func (a *Again) table() table {
	t := table{head: []string{"class or gap", "recorded", "again", "95 % of median", "difference", "times"}}
	for i, r := range append(slices.Clone(a.Rows), a.Wall) {
		if i == len(a.Rows) {
			t.rule()
		}
		times := ""
		if r.Median > 0 && r.Recorded > 0 {
			times = fmt.Sprintf("%.2f", float64(r.Recorded)/float64(r.Median))
		}
		t.add(r.Label, ms(float64(r.Recorded)), ms(float64(r.Median)), ms(float64(r.Lo))+"–"+ms(float64(r.Hi)),
			fmt.Sprintf("%+.3f", float64(r.Recorded-r.Median)/1e6), times)
	}
	return t
}

func (a *Again) csvRows(t *csvTable) {
	for _, r := range append(slices.Clone(a.Rows), a.Wall) {
		t.row("recorded", cells{"kind": a.Kind, "by": "ledger", "label": r.Label, "recorded_ns": r.Recorded,
			"median_ns": r.Median, "lo_ns": r.Lo, "hi_ns": r.Hi,
			"change_ns": r.Recorded - r.Median})
	}
}

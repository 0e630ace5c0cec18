package report

import (
	"encoding/json"
	"io"
	"math"
	"slices"

	"glmbatch/kernels/roofline"
	"glmbatch/replay/attribute"
)

// Schema names the JSON form.
const Schema = "glmbatch.report/1"

type jsonReport struct {
	Schema     string            `json:"schema"`
	Source     string            `json:"source"`
	Rows       int64             `json:"rows"`
	By         attribute.By      `json:"by"`
	Machine    *roofline.Machine `json:"machine"`
	Shared     bool              `json:"shared"`
	jsonTotals                   // over all kinds
	GPU        int64             `json:"gpu_ns"`
	Outside    jsonOutside       `json:"outside"`
	Host       []HostPhase       `json:"host"`
	Findings   []Finding         `json:"findings"`
	Warnings   []string          `json:"warnings"`
	Kinds      []jsonKind        `json:"kinds"`
	Again      *Again            `json:"again,omitempty"`
	Isolated   []Isolation       `json:"isolated,omitempty"`
	Throughput []StepKind        `json:"throughput,omitempty"`
}

type jsonOutside struct {
	Calls   int64                    `json:"calls"`
	NS      int64                    `json:"total_ns"`
	Classes []attribute.OutsideClass `json:"classes"`
}

type jsonTotals struct {
	Steps     int       `json:"steps"`
	Ranks     int       `json:"ranks"`
	RankSteps int64     `json:"rank_steps"`
	Wall      int64     `json:"wall_ns"`
	Span      int64     `json:"device_span_ns"`
	Classes   []jsonRow `json:"classes"`
	Ledger    ledger    `json:"ledger"`
}

type jsonKind struct {
	Kind string `json:"kind"`
	jsonTotals
	WallOf   attribute.Stat `json:"wall"`
	SpanOf   attribute.Stat `json:"device_span"`
	Recorded *Recorded      `json:"recorded,omitempty"`
	Waits    []jsonWait     `json:"waits,omitempty"`
	Rows     []jsonRow      `json:"rows,omitempty"`
	Comm     *jsonComm      `json:"comm,omitempty"`
}

type jsonRow struct {
	Label   string          `json:"label,omitempty"`
	Class   string          `json:"class"`
	Calls   int64           `json:"calls"`
	Self    int64           `json:"self_ns"`
	Share   float64         `json:"share"`
	Kernels float64         `json:"share_of_kernels"`
	Total   int64           `json:"total_ns"`
	Gap     int64           `json:"gap_ns"`
	Bytes   int64           `json:"bytes"`
	Wire    int64           `json:"wire_bytes"`
	FLOPs   int64           `json:"flops"`
	GB      float64         `json:"gb_per_s"`
	GFLOP   float64         `json:"gflop_per_s"`
	Bound   int64           `json:"bound_ns"`
	Min     int64           `json:"min_ns,omitempty"`
	Median  int64           `json:"median_ns,omitempty"`
	Max     int64           `json:"max_ns,omitempty"`
	PerStep *attribute.Stat `json:"per_step,omitempty"`
}

type jsonWait struct {
	Call string `json:"call"`
	NS   int64  `json:"total_ns"`
}

type jsonComm struct {
	Waiting  int64      `json:"waiting_ns"`
	Transfer int64      `json:"transfer_ns"`
	Unsplit  int64      `json:"unsplit_ns"`
	Ranks    []jsonSkew `json:"ranks"`
}

type jsonSkew struct {
	Rank        int32 `json:"rank"`
	Collectives int64 `json:"collectives"`
	Waiting     int64 `json:"waiting_ns"`
	Lag         int64 `json:"lag_ns"`
	Last        int64 `json:"last"`
}

// ledger is written as an object in its order.
type ledger []attribute.Amount

// MarshalJSON writes {name: ns}.
func (l ledger) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, a := range l {
		if i > 0 {
			b = append(b, ',')
		}
		name, err := json.Marshal(a.Name)
		if err != nil {
			return nil, err
		}
		ns, _ := json.Marshal(a.NS)
		b = append(append(append(b, name...), ':'), ns...)
	}
	return append(b, '}'), nil
}

// json writes the schema that the package's documentation lists.
func (r *Report) json(w io.Writer, _ Style) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(r.document())
}

func (r *Report) document() jsonReport {
	d := jsonReport{Schema: Schema, Source: r.Source, Rows: r.Rows, By: r.By, Machine: r.Machine,
		GPU: r.allGPUTime(), Outside: jsonOutside{r.Outside.Calls, r.Outside.NS,
			append([]attribute.OutsideClass{}, r.Outside.Classes...)},
		Host:     append([]HostPhase{}, r.Host...),
		Findings: append([]Finding{}, r.Findings...), Warnings: append([]string{},
			r.Warnings...), Kinds: []jsonKind{}, Again: r.Again, Isolated: r.Isolated, Throughput: r.Throughput}
	total := r.total()
	d.Shared = total.Shared
	d.jsonTotals = totals(&total, false)
	for i := range r.Sections {
		s := &r.Sections[i]
		k := jsonKind{Kind: s.Kind, jsonTotals: totals(s, true), WallOf: s.WallOf, SpanOf: s.SpanOf,
			Recorded: recordedKind(r.Recorded, s.Kind)}
		for _, w := range s.Waits {
			k.Waits = append(k.Waits, jsonWait{w.Name, w.NS})
		}
		if r.By != attribute.ByClass {
			for j := range s.Rows {
				k.Rows = append(k.Rows, jsonRowOf(s, &s.Rows[j], true))
				k.Rows[j].Label = s.Rows[j].Label
			}
		}
		if s.Comm.Waiting+s.Comm.Transfer+s.Comm.Unsplit > 0 {
			c := &jsonComm{Waiting: s.Comm.Waiting, Transfer: s.Comm.Transfer, Unsplit: s.Comm.Unsplit,
				Ranks: []jsonSkew{}}
			for _, x := range s.Comm.Ranks {
				c.Ranks = append(c.Ranks, jsonSkew(x))
			}
			k.Comm = c
		}
		d.Kinds = append(d.Kinds, k)
	}
	return d
}

func totals(s *attribute.Section, perStep bool) jsonTotals {
	t := jsonTotals{Steps: s.Steps, Ranks: s.Ranks, RankSteps: s.RankSteps, Wall: s.Wall, Span: s.Span,
		Classes: []jsonRow{}, Ledger: ledger(s.Ledger)}
	for i := range s.Classes {
		t.Classes = append(t.Classes, jsonRowOf(s, &s.Classes[i], perStep))
	}
	return t
}

func jsonRowOf(s *attribute.Section, c *attribute.Row, perStep bool) jsonRow {
	round := func(f float64) float64 { return math.Round(f*1e6) / 1e6 }
	j := jsonRow{Class: c.Class, Calls: c.Calls, Self: c.Self, Share: round(share(c.Self, s.Span)), Total: c.Total,
		Gap: c.Gap, Bytes: c.Bytes, Wire: c.Wire,
		FLOPs: c.FLOPs, GB: round(rate(s, c.Bytes, c.Total)), GFLOP: round(rate(s, c.FLOPs,
			c.Total)), Bound: c.Bound, Min: c.Min, Median: c.Median, Max: c.Max}
	if c.Kernels > 0 {
		j.Kernels = round(share(c.Kernels, kernelTime(s)))
	}
	if perStep {
		j.PerStep = &c.PerStep
	}
	return j
}

// total adds up the sections.
func (r *Report) total() attribute.Section {
	var t attribute.Section
	var rest []attribute.Amount
	for i := range r.Sections {
		s := &r.Sections[i]
		t.Steps += s.Steps
		t.Ranks = max(t.Ranks, s.Ranks)
		t.RankSteps += s.RankSteps
		t.Shared = t.Shared || s.Shared
		t.Wall += s.Wall
		t.Span += s.Span
		for _, c := range s.Classes {
			t.Classes = addRow(t.Classes, c)
		}
		for j, a := range s.Ledger[len(s.Classes):] {
			if j == len(rest) {
				rest = append(rest, attribute.Amount{Name: a.Name})
			}
			rest[j].NS += a.NS
		}
	}
	slices.SortStableFunc(t.Classes, func(a, b attribute.Row) int { return int(max(-1, min(1, b.Self-a.Self))) })
	for _, c := range t.Classes {
		t.Ledger = append(t.Ledger, attribute.Amount{Name: c.Label, NS: c.Self})
	}
	t.Ledger = append(t.Ledger, rest...)
	return t
}

func addRow(rows []attribute.Row, c attribute.Row) []attribute.Row {
	i := slices.IndexFunc(rows, func(r attribute.Row) bool { return r.Class == c.Class })
	if i < 0 {
		return append(rows, c)
	}
	r := &rows[i]
	r.Calls += c.Calls
	r.Self += c.Self
	r.Total += c.Total
	r.Gap += c.Gap
	r.Bytes += c.Bytes
	r.Wire += c.Wire
	r.FLOPs += c.FLOPs
	r.Bound += c.Bound
	r.Kernels += c.Kernels
	return rows
}

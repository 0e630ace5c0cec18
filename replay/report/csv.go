package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"

	"glmbatch/datasets"
	"glmbatch/replay/attribute"
)

// csvColumns are the columns of the one table of a CSV file. A row leaves those empty
// that its kind of figure, which the first names, has not.
var csvColumns = []string{"table", "variant", "kind", "by", "label", "class", "steps", "ranks", "calls", "self_ns",
	"share_of_device", "share_of_wall", "total_ns",
	"bytes", "wire_bytes", "flops", "gb_per_s", "gflop_per_s", "bound_ns", "median_ns", "lo_ns", "hi_ns", "gap_ns",
	"recorded_ns", "a_ns", "b_ns", "change_ns", "verdict"}

// csvTable writes rows of csvColumns.
type csvTable struct {
	w       *csv.Writer
	variant string
}

// cells are a row's, by column.
type cells map[string]any

func (t *csvTable) row(table string, c cells) {
	line := make([]string, len(csvColumns))
	for i, name := range csvColumns {
		switch v := c[name].(type) {
		case string:
			line[i] = datasets.Cell(v)
		case int:
			line[i] = strconv.Itoa(v)
		case int64:
			line[i] = strconv.FormatInt(v, 10)
		case float64:
			line[i] = strconv.FormatFloat(v, 'g', 6, 64)
		}
	}
	line[0], line[1] = table, datasets.Cell(t.variant)
	t.w.Write(line)
}

// Variant is a report among others in one CSV file.
type Variant struct {
	Name   string
	Report *Report
	Diff   *Diff // from the variant that it is compared with; nil: none
}

// WriteCSV writes reports as one table.
func WriteCSV(w io.Writer, variants []Variant) error {
	t := &csvTable{w: csv.NewWriter(w)}
	t.w.Write(csvColumns)
	for _, v := range variants {
		t.variant = v.Name
		v.Report.csvRows(t)
		if v.Diff != nil {
			v.Diff.csvRows(t)
		}
	}
	t.w.Flush()
	return t.w.Error()
}

// csv writes one table: a row for each class, each row asked for and each entry of the ledger.
func (r *Report) csv(w io.Writer, _ Style) error { return WriteCSV(w, []Variant{{Report: r}}) }

func (r *Report) csvRows(t *csvTable) {
	for i := range r.Sections {
		s := &r.Sections[i]
		row := func(by attribute.By, x *attribute.Row) {
			t.row("cost", cells{"kind": s.Kind, "by": string(by), "label": x.Label, "class": x.Class, "steps": s.Steps,
				"ranks": s.Ranks, "calls": x.Calls, "self_ns": x.Self,
				"share_of_device": share(x.Self, s.Span), "share_of_wall": share(x.Self,
					s.Wall), "total_ns": x.Total, "bytes": x.Bytes, "wire_bytes": x.Wire, "flops": x.FLOPs,
				"gb_per_s": rate(s, x.Bytes, x.Total), "gflop_per_s": rate(s, x.FLOPs, x.Total), "bound_ns": x.Bound,
				"median_ns": x.PerStep.Median, "lo_ns": x.PerStep.Lo, "hi_ns": x.PerStep.Hi, "gap_ns": x.Gap})
		}
		for j := range s.Classes {
			row(attribute.ByClass, &s.Classes[j])
		}
		if r.By != attribute.ByClass {
			for j := range s.Rows {
				row(r.By, &s.Rows[j])
			}
		}
		rest := append(s.Ledger[len(s.Classes):len(s.Ledger):len(s.Ledger)], attribute.Amount{Name: "wall", NS: s.Wall})
		for _, a := range rest {
			t.row("ledger", cells{"kind": s.Kind, "by": "ledger", "label": a.Name, "steps": s.Steps, "ranks": s.Ranks,
				"self_ns": a.NS, "share_of_wall": share(a.NS, s.Wall)})
		}
	}
	for _, o := range r.Outside.Classes {
		t.row("outside", cells{"kind": outsideName, "by": string(attribute.ByClass), "label": o.Class, "class": o.Class,
			"calls": o.Calls, "total_ns": o.NS})
	}
	if r.Again != nil {
		r.Again.csvRows(t)
	}
	for i := range r.Isolated {
		r.Isolated[i].csvRows(t)
	}
}

// maxBenchSteps bounds the lines of one benchmark; more steps are thinned evenly.
const maxBenchSteps = 200

// bench writes Go benchmark lines: a line for each step, so that benchstat sees
// the spread. Values are means over the ranks.
func (r *Report) bench(w io.Writer, _ Style) error {
	p := &printer{w: w}
	p.line("pkg: glmbatch")
	for i := range r.Sections {
		s := &r.Sections[i]
		name := "Benchmark" + strings.ToUpper(s.Kind[:1]) + s.Kind[1:]
		lines(p, name+"/wall", s.Walls)
		rows, by := s.Classes, attribute.ByClass
		if r.By != attribute.ByClass {
			rows, by = s.Rows, r.By
		}
		for j := range rows {
			lines(p, name+"/"+string(by)+"="+strings.Join(strings.Fields(rows[j].Label), "_"), rows[j].Steps)
		}
	}
	for i := range r.Isolated {
		for _, x := range r.Isolated[i].Rows {
			lines(p, "BenchmarkAlone/warm/class="+x.Label, []int64{x.Warm})
			lines(p, "BenchmarkAlone/cold/class="+x.Label, []int64{x.Cold})
			lines(p, "BenchmarkWithout/class="+x.Label, []int64{x.Marginal})
		}
	}
	return p.err
}

func lines(p *printer, name string, values []int64) {
	every := (len(values) + maxBenchSteps - 1) / maxBenchSteps
	for i := 0; i < len(values); i += every {
		p.line(fmt.Sprintf("%s\t1\t%d ns/op", name, values[i]))
	}
}

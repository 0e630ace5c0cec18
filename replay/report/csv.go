package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"

	"glmbatch/replay/attribute"
)

// cell is a text for a cell of a CSV file: what a spreadsheet would run as a formula
// gets an apostrophe before it.
func cell(s string) string {
	if s != "" && strings.IndexByte("=+-@\t\r", s[0]) >= 0 {
		return "'" + s
	}
	return s
}

// csv writes one table: a row for each class, each row asked for and each entry of the ledger.
func (r *Report) csv(w io.Writer, _ Style) error {
	c := csv.NewWriter(w)
	c.Write([]string{"kind", "by", "label", "class", "steps", "ranks", "calls", "self_ns", "share_of_device", "share_of_wall", "total_ns",
		"bytes", "wire_bytes", "flops", "gb_per_s", "gflop_per_s", "bound_ns", "median_ns", "lo_ns", "hi_ns", "gap_ns"})
	n := func(v int64) string { return strconv.FormatInt(v, 10) }
	f := func(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
	for i := range r.Sections {
		s := &r.Sections[i]
		row := func(by attribute.By, x *attribute.Row) {
			c.Write([]string{s.Kind, string(by), cell(x.Label), cell(x.Class), n(int64(s.Steps)), n(int64(s.Ranks)), n(x.Calls), n(x.Self),
				f(share(x.Self, s.Span)), f(share(x.Self, s.Wall)), n(x.Total), n(x.Bytes), n(x.Wire), n(x.FLOPs), f(rate(s, x.Bytes, x.Total)),
				f(rate(s, x.FLOPs, x.Total)), n(x.Bound), n(x.PerStep.Median), n(x.PerStep.Lo), n(x.PerStep.Hi), n(x.Gap)})
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
			line := make([]string, 21)
			line[0], line[1], line[2], line[4], line[5] = s.Kind, "ledger", a.Name, n(int64(s.Steps)), n(int64(s.Ranks))
			line[7], line[9] = n(a.NS), f(share(a.NS, s.Wall))
			c.Write(line)
		}
	}
	for _, o := range r.Outside.Classes {
		line := make([]string, 21)
		line[0], line[1], line[2], line[3], line[6], line[10] = outsideName, string(attribute.ByClass), cell(o.Class), cell(o.Class), n(o.Calls), n(o.NS)
		c.Write(line)
	}
	for i := range r.Isolated {
		r.Isolated[i].csvRows(c)
	}
	c.Flush()
	return c.Error()
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

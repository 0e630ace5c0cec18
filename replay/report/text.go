package report

import (
	"fmt"
	"io"
	"strings"

	"glmbatch/replay/attribute"
	"glmbatch/replay/timeline"
)

// text writes the report for a terminal.
func (r *Report) text(w io.Writer, style Style) error {
	p := &printer{w: w, style: style}
	if p.style.Width == 0 {
		p.style.Width = DefaultWidth
	}
	for _, f := range r.Findings {
		p.wrap("• "+f.Text, "  ")
	}
	for i := range r.Sections {
		s := &r.Sections[i]
		p.line("")
		p.line(p.bold(title(s)))
		p.wrap(r.subtitle(s), "")
		p.line("")
		p.table(r.costs(s))
		if r.By != attribute.ByClass {
			p.line("")
			p.table(r.grouped(s))
		}
		if len(s.Comm.Ranks) > 1 && !s.Shared {
			p.line("")
			p.table(skews(s))
		}
		if f := r.foremost(s.Kind); f != "" {
			p.line("")
			p.wrap("→ "+f, "  ")
		}
	}
	if r.Again != nil {
		p.line("")
		p.line(p.bold(r.Again.title()))
		p.line("")
		p.table(r.Again.table())
	}
	for i := range r.Isolated {
		p.line("")
		p.line(p.bold(isolatedTitle(&r.Isolated[i])))
		p.line("")
		p.table(r.Isolated[i].table())
	}
	if r.Outside.NS > 0 {
		p.line("")
		p.table(r.gpuTimes())
	}
	if len(r.Host) > 0 {
		p.line("")
		p.line(p.bold("host, in and between steps"))
		p.line("")
		p.table(r.hosts())
	}
	if len(r.Warnings) > 0 {
		p.line("")
		for _, warning := range r.Warnings {
			p.wrap("note: "+warning, "  ")
		}
	}
	return p.err
}

// foremost is the first finding of a kind of steps, which its table ends with where there
// are several kinds: the top of a long report is out of sight by then.
func (r *Report) foremost(kind string) string {
	for _, f := range r.Findings {
		if f.Kind == kind && len(r.Sections) > 1 {
			return f.Text
		}
	}
	return ""
}

// printer writes lines and keeps the first error.
type printer struct {
	w     io.Writer
	style Style
	err   error
}

func (p *printer) line(s string) {
	if p.err == nil {
		_, p.err = fmt.Fprintln(p.w, s)
	}
}

func (p *printer) bold(s string) string {
	if !p.style.Colour {
		return s
	}
	return "\x1b[1m" + s + "\x1b[0m"
}

func (p *printer) table(t table) {
	t = t.compact().fit(p.style.Width)
	if p.err == nil {
		p.err = t.text(p.w, p.style.Width, p.bold)
	}
}

// wrap breaks text at spaces; further lines begin with indent.
func (p *printer) wrap(text, indent string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len([]rune(line))+1+len([]rune(word)) > p.style.Width {
			p.line(line)
			line = indent + word
			continue
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	p.line(line)
}

func stepsText(n int) string {
	if n == 1 {
		return "1 step"
	}
	return thousands(int64(n)) + " steps"
}

func title(s *attribute.Section) string {
	ranks := "ranks"
	if s.Ranks == 1 {
		ranks = "rank"
	}
	t := fmt.Sprintf("%s: %s, %d %s", s.Kind, stepsText(s.Steps), s.Ranks, ranks)
	if s.Shared && s.Ranks > 1 {
		t += " that share one machine"
	}
	return t
}

func (r *Report) subtitle(s *attribute.Section) string {
	t := fmt.Sprintf("wall %s ms a step", ms(mean(s, s.Wall)))
	if s.Steps > 1 {
		t += fmt.Sprintf(" (median %s, 95 %% interval %s to %s%s)", ms(float64(s.WallOf.Median)),
			ms(float64(s.WallOf.Lo)), ms(float64(s.WallOf.Hi)), r.worst(s))
	} else if w := r.worst(s); w != "" {
		t += " (" + strings.TrimPrefix(w, "; ") + ")"
	}
	t += fmt.Sprintf("; device span %s ms", ms(mean(s, s.Span)))
	if s.Comm.Waiting+s.Comm.Transfer > 0 && s.Ranks > 1 && !s.Shared {
		t += fmt.Sprintf("; in collectives %s ms waiting, %s ms transfer", ms(mean(s, s.Comm.Waiting)),
			ms(mean(s, s.Comm.Transfer)))
	}
	if k := recordedKind(r.Recorded, s.Kind); k != nil {
		t += k.text()
	}
	return t
}

// costs is the table of classes with the rest of the ledger below, which adds up
// to the wall time.
func (r *Report) costs(s *attribute.Section) table {
	t := table{head: append([]string{"class"}, r.columns()...)}
	for i := range s.Classes {
		t.add(r.cells(s, &s.Classes[i])...)
	}
	for _, a := range s.Ledger[len(s.Classes):] {
		if a.NS != 0 {
			t.add(a.Name, "", ms(mean(s, a.NS)), "", percentCell(share(a.NS, s.Wall)))
		}
	}
	t.rule()
	t.add("wall", "", ms(mean(s, s.Wall)), "", percentCell(1))
	return t
}

// grouped is the table of rows by what was asked for.
func (r *Report) grouped(s *attribute.Section) table {
	t := table{head: append([]string{string(r.By)}, r.columns()...)}
	for i := range s.Rows {
		t.add(r.cells(s, &s.Rows[i])...)
	}
	if s.Overlap > 0 {
		t.add("overlap", "", ms(mean(s, s.Overlap)), "", percentCell(share(s.Overlap, s.Wall)))
	}
	if r.By.Site() == timeline.NoSite {
		return t
	}
	calls, self := int64(0), s.Overlap
	for i := range s.Rows {
		calls, self = calls+s.Rows[i].Calls, self+s.Rows[i].Self
	}
	t.rule()
	t.add("all", count(perStep(s, calls)), ms(mean(s, self)), "", percentCell(share(self, s.Wall)),
		percentCell(share(kernelTime(s), kernelTime(s))))
	return t.keep(func(i int) bool { return i <= 5 }) // names are long, and rates of many kernels say little
}

func (r *Report) columns() []string {
	c := []string{"calls", "self ms", "95 % of median", "of wall", "of kernels", "min us", "median us", "max us",
		"gap us", "GB/s", "GFLOP/s"}
	if r.Machine != nil {
		c = append(c, "× bound")
	}
	return c
}

func (r *Report) cells(s *attribute.Section, c *attribute.Row) []string {
	of := s
	if r.By == attribute.ByRank && c.Key.Rank >= 0 {
		of = &attribute.Section{Steps: s.Steps, RankSteps: int64(s.Steps), Span: s.Span / int64(max(1, s.Ranks)),
			Wall: s.Wall / int64(max(1, s.Ranks)), Shared: s.Shared, Ranks: s.Ranks}
	}
	interval := ""
	if s.Steps > 1 {
		interval = ms(float64(c.PerStep.Lo)) + "–" + ms(float64(c.PerStep.Hi))
	}
	cells := []string{c.Label, count(perStep(of, c.Calls)), ms(mean(of, c.Self)), interval,
		percentCell(share(c.Self, of.Wall)), ofKernels(s, c),
		lengthCell(c, c.Min), lengthCell(c, c.Median), lengthCell(c, c.Max), gapCell(c), rateCell(rate(of, c.Bytes,
			c.Total)), rateCell(rate(of, c.FLOPs, c.Total))}
	if r.Machine != nil {
		bound := ""
		if c.Bound > 0 && c.Total > 0 {
			bound = figure(float64(c.Total) / float64(c.Bound))
		}
		cells = append(cells, bound)
	}
	return cells
}

func percentCell(f float64) string { return fmt.Sprintf("%.1f %%", 100*f) }

// ofKernels is a row's share of the time that all kernels took, overlapped or not.
// Copies and memsets are no kernels.
func ofKernels(s *attribute.Section, c *attribute.Row) string {
	if c.Kernels == 0 {
		return ""
	}
	return percentCell(share(c.Kernels, kernelTime(s)))
}

// kernelTime adds up the lengths of all kernels' spans.
func kernelTime(s *attribute.Section) int64 {
	var ns int64
	for i := range s.Classes {
		ns += s.Classes[i].Kernels
	}
	return ns
}

// lengthCell is one of the lengths of a kernel's spans.
func lengthCell(c *attribute.Row, ns int64) string {
	if c.Max == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", float64(ns)/1e3)
}

// gapCell is how long the device idled before a call, in the mean.
func gapCell(c *attribute.Row) string {
	if c.Gap == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", float64(c.Gap)/float64(max(1, c.Calls))/1e3)
}

func rateCell(f float64) string {
	if f == 0 {
		return ""
	}
	return figure(f)
}

// skews is the table of the ranks' arrivals at collectives.
func skews(s *attribute.Section) table {
	t := table{head: []string{"rank", "collectives", "waiting ms", "after first, us", "arrives last"}}
	for _, k := range s.Comm.Ranks {
		n := float64(max(1, s.Steps))
		t.add(fmt.Sprintf("rank %d", k.Rank), count(float64(k.Collectives)/n), ms(float64(k.Waiting)/n),
			fmt.Sprintf("%.1f", float64(k.Lag)/float64(max(1, k.Collectives))/1e3), percentCell(share(k.Last,
				k.Collectives)))
	}
	return t
}

// markdown writes the same tables for a pull request.
func (r *Report) markdown(w io.Writer, _ Style) error {
	p := &printer{w: w, style: Style{Width: 1 << 30}}
	for _, f := range r.Findings {
		p.line("- " + strings.ReplaceAll(f.Text, "<", "&lt;"))
	}
	for i := range r.Sections {
		s := &r.Sections[i]
		tables := []table{r.costs(s)}
		if r.By != attribute.ByClass {
			tables = append(tables, r.grouped(s))
		}
		if len(s.Comm.Ranks) > 1 && !s.Shared {
			tables = append(tables, skews(s))
		}
		p.line("")
		p.line("### " + title(s))
		p.line("")
		p.line(r.subtitle(s))
		for _, t := range tables {
			p.line("")
			if p.err == nil {
				t = t.compact()
				p.err = t.markdown(w)
			}
		}
	}
	if r.Again != nil {
		p.line("")
		p.line("### " + r.Again.title())
		p.line("")
		if t := r.Again.table(); p.err == nil {
			p.err = t.markdown(w)
		}
	}
	for i := range r.Isolated {
		p.line("")
		p.line("### " + isolatedTitle(&r.Isolated[i]))
		p.line("")
		if p.err == nil {
			t := r.Isolated[i].table().compact()
			p.err = t.markdown(w)
		}
	}
	if r.Outside.NS > 0 {
		p.line("")
		if t := r.gpuTimes(); p.err == nil {
			p.err = t.markdown(w)
		}
	}
	if len(r.Host) > 0 {
		p.line("")
		p.line("### host, in and between steps")
		p.line("")
		if t := r.hosts(); p.err == nil {
			p.err = t.markdown(w)
		}
	}
	for _, warning := range r.Warnings {
		p.line("")
		p.line("> " + warning)
	}
	return p.err
}

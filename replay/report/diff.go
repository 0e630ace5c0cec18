package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"glmbatch/replay/attribute"
)

// Diff is how two timelines differ.
type Diff struct {
	Schema   string     `json:"schema"`
	A        string     `json:"a"`
	B        string     `json:"b"`
	Findings []string   `json:"findings"`
	Kinds    []KindDiff `json:"kinds"`

	Throughput []ThroughputKinds `json:"throughput,omitempty"` // of all steps of two jobs
}

// DiffSchema names the JSON form of a [Diff].
const DiffSchema = "glmbatch.diff/1"

// KindDiff is the difference of the steps of one kind.
type KindDiff struct {
	Kind    string   `json:"kind"`
	Steps   [2]int   `json:"steps"`
	Wall    Change   `json:"wall"`
	Span    Change   `json:"device_span"`
	Ledger  []Change `json:"ledger"`  // classes and gaps; their changes add up to the wall's
	Kernels []Change `json:"kernels"` // by name, grid and class; the largest change first
}

// Change is one figure of two timelines, per step: the mean over steps and ranks,
// and the median with its interval.
type Change struct {
	Name    string         `json:"name"`
	NameB   string         `json:"name_b,omitempty"` // of a kernel that does the same in B under another name
	Class   string         `json:"class,omitempty"`
	Calls   [2]float64     `json:"calls"` // a step
	A       float64        `json:"a_ns"`
	B       float64        `json:"b_ns"`
	Delta   float64        `json:"change_ns"` // B - A
	StatA   attribute.Stat `json:"a"`
	StatB   attribute.Stat `json:"b"`
	Verdict Verdict        `json:"verdict"`
}

// Verdict is what can be said of a change.
type Verdict string

// The verdicts. Two timelines differ in a figure when the 95 % intervals of its
// medians do not overlap and each has enough steps.
const (
	Faster     Verdict = "faster"
	Slower     Verdict = "slower"
	Same       Verdict = "same" // to the nanosecond
	CannotTell Verdict = "cannot tell"
	OnlyA      Verdict = "only in A"
	OnlyB      Verdict = "only in B"
)

// DiffOptions are the options that both reports of a diff are loaded with.
func DiffOptions(kind string) Options { return Options{By: attribute.ByLaunch, Kind: kind} }

// Compare compares two reports that were loaded with [DiffOptions].
func Compare(a, b *Report) (*Diff, error) {
	d := &Diff{Schema: DiffSchema, A: a.Source, B: b.Source, Findings: []string{}, Kinds: []KindDiff{}}
	for i := range a.Sections {
		sa := &a.Sections[i]
		sb := section(b, sa.Kind)
		if sb == nil && len(a.Sections) == 1 && len(b.Sections) == 1 {
			sb = &b.Sections[0]
			d.Findings = append(d.Findings, fmt.Sprintf("A has only %s steps and B only %s steps: they are compared "+
				"as they are", sa.Kind, sb.Kind))
		}
		if sb == nil {
			d.Findings = append(d.Findings, fmt.Sprintf("only A has %s steps", sa.Kind))
			continue
		}
		d.Kinds = append(d.Kinds, compare(sa, sb))
	}
	if len(d.Kinds) == 0 {
		return nil, fmt.Errorf("%s and %s have no kind of step in common", a.Source, b.Source)
	}
	for _, sb := range b.Sections {
		if section(a, sb.Kind) == nil && len(a.Sections)+len(b.Sections) > 2 {
			d.Findings = append(d.Findings, fmt.Sprintf("only B has %s steps", sb.Kind))
		}
	}
	for i := range d.Kinds {
		d.Findings = append(d.Findings, d.Kinds[i].sentence())
	}
	return d, nil
}

func section(r *Report, kind string) *attribute.Section {
	for i := range r.Sections {
		if r.Sections[i].Kind == kind {
			return &r.Sections[i]
		}
	}
	return nil
}

func compare(a, b *attribute.Section) KindDiff {
	k := KindDiff{Kind: a.Kind, Steps: [2]int{a.Steps, b.Steps}}
	k.Wall = change("wall", mean(a, a.Wall), mean(b, b.Wall), a.WallOf, b.WallOf)
	k.Span = change("device span", mean(a, a.Span), mean(b, b.Span), a.SpanOf, b.SpanOf)
	k.Ledger = changes(a, b, amounts(a), amounts(b))
	k.Kernels = renamed(a, b, changes(a, b, a.Rows, b.Rows))
	return k
}

// amounts are a ledger's entries as rows: the classes, and the rest without calls.
func amounts(s *attribute.Section) []attribute.Row {
	rows := slices.Clone(s.Classes)
	for _, a := range s.Ledger[len(s.Classes):] {
		rows = append(rows, attribute.Row{Label: a.Name, Self: a.NS, PerStep: a.PerStep})
	}
	return rows
}

type identity struct{ label, class string }

// changes pairs rows by what they are called and their class.
func changes(a, b *attribute.Section, as, bs []attribute.Row) []Change {
	var list []Change
	rest := map[identity]*attribute.Row{}
	for i := range bs {
		rest[identity{bs[i].Label, bs[i].Class}] = &bs[i]
	}
	for i := range as {
		x := &as[i]
		id := identity{x.Label, x.Class}
		y := rest[id]
		delete(rest, id)
		list = append(list, paired(a, b, x, y))
	}
	for i := range bs {
		if y := &bs[i]; rest[identity{y.Label, y.Class}] == y {
			list = append(list, paired(a, b, nil, y))
		}
	}
	slices.SortStableFunc(list, func(x, y Change) int { return cmp.Compare(abs(y.Delta), abs(x.Delta)) })
	return list
}

// paired compares a row of each; nil: the other has none.
func paired(a, b *attribute.Section, x, y *attribute.Row) Change {
	var c Change
	switch {
	case x == nil:
		c = change(y.Label, 0, mean(b, y.Self), attribute.Stat{}, y.PerStep)
		c.Verdict = OnlyB
		c.Class = y.Class
	case y == nil:
		c = change(x.Label, mean(a, x.Self), 0, x.PerStep, attribute.Stat{})
		c.Verdict = OnlyA
		c.Class = x.Class
	default:
		c = change(x.Label, mean(a, x.Self), mean(b, y.Self), x.PerStep, y.PerStep)
		c.Class = x.Class
	}
	if x != nil {
		c.Calls[0] = perStep(a, x.Calls)
	}
	if y != nil {
		c.Calls[1] = perStep(b, y.Calls)
	}
	return c
}

func change(name string, a, b float64, sa, sb attribute.Stat) Change {
	c := Change{Name: name, A: a, B: b, Delta: b - a, StatA: sa, StatB: sb, Verdict: CannotTell}
	if a == b && sa == sb {
		c.Verdict = Same
	}
	if sa.Apart(sb) {
		c.Verdict = Faster
		if sb.Median > sa.Median {
			c.Verdict = Slower
		}
	}
	return c
}

func abs(f float64) float64 { return max(f, -f) }

// sentence says what the change of a kind's steps comes to and what makes most of it.
func (k *KindDiff) sentence() string {
	c := &k.Wall
	if c.Verdict == CannotTell && k.Span.Verdict != CannotTell {
		c = &k.Span
	}
	if c.Verdict == Same || c.Verdict == CannotTell {
		text := fmt.Sprintf("the %s's %s is the same in A and B", stepName(k.Kind), c.Name)
		if c.Verdict == CannotTell {
			text = fmt.Sprintf("cannot tell whether the %s changed: its %s is %s ms in A and %s ms in B, and the 95 "+
				"%% intervals overlap or rest on too few steps",
				stepName(k.Kind), c.Name, ms(c.A), ms(c.B))
		}
		if l := k.moved(func(l *Change) bool { return true }); l != nil {
			text += fmt.Sprintf("; but %s takes %s ms instead of %s ms", l.Name, ms(l.B), ms(l.A))
		}
		return text
	}
	word := "shorter"
	if c.Delta > 0 {
		word = "longer"
	}
	text := fmt.Sprintf("the %s's %s is %s ms (%s) %s in B: %s ms instead of %s ms", stepName(k.Kind), c.Name,
		ms(abs(c.Delta)),
		percent(abs(c.Delta)/max(c.A, 1)), word, ms(c.B), ms(c.A))
	if l := k.moved(func(l *Change) bool { return l.Delta*c.Delta > 0 }); l != nil {
		text += fmt.Sprintf("; %s makes %s ms of it (%s ms to %s ms)", l.Name, ms(abs(l.Delta)), ms(l.A), ms(l.B))
	}
	return text
}

// moved returns the entry of the ledger with the largest certain change that fits.
func (k *KindDiff) moved(fits func(*Change) bool) *Change {
	for i := range k.Ledger {
		if l := &k.Ledger[i]; l.Verdict != CannotTell && l.Verdict != Same && fits(l) {
			return l
		}
	}
	return nil
}

// DiffFormats are the formats of a diff, the default first.
var DiffFormats = []string{"text", "json", "markdown"}

// Write writes the diff in a format of [DiffFormats].
func (d *Diff) Write(w io.Writer, format string, style Style) error {
	switch format {
	case "json":
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		return e.Encode(d)
	case "markdown":
		return d.tables(&printer{w: w, style: Style{Width: 1 << 30}}, true)
	case "text":
		if style.Width == 0 {
			style.Width = DefaultWidth
		}
		return d.tables(&printer{w: w, style: style}, false)
	}
	return fmt.Errorf("no format %q: there are %s", format, strings.Join(DiffFormats, ", "))
}

// shownKernels is how many kernels the tables of a diff list.
const shownKernels = 20

func (d *Diff) tables(p *printer, markdown bool) error {
	show := func(t table) {
		p.line("")
		if markdown && p.err == nil {
			t = t.compact()
			p.err = t.markdown(p.w)
		} else if !markdown {
			p.table(t)
		}
	}
	for _, f := range d.Findings {
		p.wrap("• "+f, "  ")
	}
	p.line("")
	p.wrap("A is "+d.A, "  ")
	p.wrap("B is "+d.B, "  ")
	for i := range d.Kinds {
		k := &d.Kinds[i]
		p.line("")
		p.line(p.bold(fmt.Sprintf("%s: %s in A, %d in B; ms a step", k.Kind, stepsText(k.Steps[0]), k.Steps[1])))
		t := changeTable("class or gap")
		for j := range k.Ledger {
			if c := &k.Ledger[j]; c.A != 0 || c.B != 0 {
				t.add(c.cells()...)
			}
		}
		t.rule()
		t.add(k.Wall.cells()...)
		t.add(k.Span.cells()...)
		show(t)
		t = changeTable("kernel")
		for j := range k.Kernels {
			if j == shownKernels {
				t.add(fmt.Sprintf("and %d more with smaller changes", len(k.Kernels)-j))
				break
			}
			t.add(k.Kernels[j].cells()...)
		}
		show(t)
	}
	return p.err
}

func changeTable(first string) table {
	return table{head: []string{first, "calls A", "B", "A ms", "B ms", "change ms", "change", "verdict"}}
}

func (c *Change) cells() []string {
	relative := ""
	if c.A > 0 && c.B > 0 {
		relative = fmt.Sprintf("%+.1f %%", 100*c.Delta/c.A)
	}
	calls := func(f float64) string {
		if f == 0 {
			return ""
		}
		return count(f)
	}
	name := c.Name
	if c.NameB != "" {
		half := func(s string) string { return shorten(s, 40) }
		name = half(c.Name) + " → " + half(c.NameB)
	}
	return []string{name, calls(c.Calls[0]), calls(c.Calls[1]), ms(c.A), ms(c.B), fmt.Sprintf("%+.3f", c.Delta/1e6),
		relative, string(c.Verdict)}
}

func (d *Diff) csvRows(t *csvTable) {
	for i := range d.Kinds {
		k := &d.Kinds[i]
		row := func(by string, c *Change) {
			t.row("difference", cells{"kind": k.Kind, "by": by, "label": c.Name, "class": c.Class, "a_ns": c.A,
				"b_ns": c.B, "change_ns": c.Delta, "verdict": string(c.Verdict)})
		}
		for j := range k.Ledger {
			row("ledger", &k.Ledger[j])
		}
		row("ledger", &k.Wall)
		for j := range k.Kernels {
			row("launch", &k.Kernels[j])
		}
	}
}

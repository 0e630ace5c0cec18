package report

import (
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"glmbatch/datasets"
	"glmbatch/replay/attribute"
	"glmbatch/replay/timeline"
)

//go:embed page
var pageFiles embed.FS

// scripts are the page's scripts, in the order in which they run.
var scripts = []string{"base.js", "table.js", "step.js", "plots.js", "timeline.js"}

// Page is a report with the spans of some steps, as one HTML file.
type Page struct {
	Report   *Report // by kernel
	Isolated []Isolation
	Tables   []PageTable // what else there is to show

	spans spanBook
	job   []jobPoint
	note  string
}

// maxPageSpans bounds the spans of a page: more make it slow to open.
const maxPageSpans = 200_000

// PageTable is a table of a page: its first column is text, the others are figures.
type PageTable struct {
	Title string     `json:"title"`
	Notes []string   `json:"notes"`
	Head  []string   `json:"head"`
	Rows  [][]string `json:"rows"` // null: a line between
}

func pageTable(title string, notes []string, t table) PageTable {
	t = t.compact()
	return PageTable{title, orEmpty(notes), t.head, t.rows}
}

// AddAgain adds a recorded step beside its repeats.
func (p *Page) AddAgain(a *Again) {
	p.Tables = append(p.Tables, pageTable("As recorded, and run again (ms)", []string{a.Text}, a.table()))
}

// AddWhatIf adds what a change does to the step: notes, and the difference.
func (p *Page) AddWhatIf(name string, notes []string, d *Diff) {
	for i := range d.Kinds {
		k := &d.Kinds[i]
		t := changeTable("class or gap")
		for j := range k.Ledger {
			if c := &k.Ledger[j]; c.A != 0 || c.B != 0 {
				t.add(c.cells()...)
			}
		}
		t.rule()
		t.add(k.Wall.cells()...)
		p.Tables = append(p.Tables, pageTable("What if: "+name+" (A: as it is, B: with the change)",
			append(notes[:len(notes):len(notes)], d.Findings...), t))
		notes = nil
	}
}

// Page makes a page of the timeline, and of the steps table beside it if there is
// one. If not all steps fit into the page, it has of each kind the median and the
// slowest step and others evenly spread.
func (s Source) Page(opt Options) (*Page, error) {
	opt.By = attribute.ByKernel
	r, infos, err := s.report(opt)
	if err != nil {
		return nil, err
	}
	p := &Page{Report: r}
	if err := p.read(s, pick(infos, maxPageSpans)); err != nil {
		return nil, err
	}
	if s.Rows == nil {
		p.job, err = jobOf(filepath.Join(s.Path, datasets.StepsDir))
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// stepInfo is a step of the timeline.
type stepInfo struct {
	Step int64
	Kind string
	Wall int64 // the mean over its ranks
	rows int
	time timeline.Interval // of its rows
	mark string
}

// timeOf is the time in which rows lie.
func timeOf(rows []timeline.Event) timeline.Interval {
	v := timeline.Interval{Start: math.MaxInt64, End: math.MinInt64}
	for i := range rows {
		v.Start, v.End = min(v.Start, rows[i].Start), max(v.End, rows[i].End)
	}
	return v
}

// pageRows are the rows of a page's step, and the device rows of others in its time.
type pageRows struct {
	info        stepInfo
	own, others []timeline.Event
}

// take hands the device rows of a step, -1: of none, to the other steps in whose
// time they ran, at most limit of them in all.
func take(steps []*pageRows, step int64, rows []timeline.Event, limit *int) {
	time := timeOf(rows)
	for _, p := range steps {
		if p.info.Step == step || time.End <= p.info.time.Start || time.Start >= p.info.time.End {
			continue
		}
		for i := range rows {
			e := &rows[i]
			if e.Role == timeline.Device && e.End > p.info.time.Start && e.Start < p.info.time.End &&
				e.End >= e.Start && *limit > 0 {
				p.others = append(p.others, *e)
				*limit--
			}
		}
	}
}

// pick chooses steps with at most limit spans in all, if one of them alone does
// not have more.
func pick(infos []stepInfo, limit int) map[int64]stepInfo {
	byKind := map[string][]int{}
	for i := range infos {
		byKind[infos[i].Kind] = append(byKind[infos[i].Kind], i)
	}
	var order []int
	for _, kind := range kindsOf(infos) {
		of := slices.Clone(byKind[kind])
		slices.SortStableFunc(of, func(a, b int) int { return cmp.Compare(infos[a].Wall, infos[b].Wall) })
		median, slowest := of[len(of)/2], of[len(of)-1]
		if len(of) > 2 {
			infos[median].mark, infos[slowest].mark = "median", "slowest"
			order = append(order, median, slowest)
		}
	}
	for stride := len(infos); stride > 0; stride /= 2 {
		for i := 0; i < len(infos); i += stride {
			order = append(order, i)
		}
	}
	chosen, spans := map[int64]stepInfo{}, 0
	for _, i := range order {
		s := infos[i]
		if _, ok := chosen[s.Step]; !ok && (spans+s.rows <= limit || len(chosen) == 0) {
			chosen[s.Step] = s
			spans += s.rows
		}
	}
	return chosen
}

func kindsOf(infos []stepInfo) []string {
	var kinds []string
	for _, s := range infos {
		if !slices.Contains(kinds, s.Kind) {
			kinds = append(kinds, s.Kind)
		}
	}
	return kinds
}

// read fills in the spans of the chosen steps.
func (p *Page) read(from Source, chosen map[int64]stepInfo) error {
	if len(chosen) == 0 {
		return nil
	}
	t, err := from.open(timeline.Open, timeline.NoSite)
	if err != nil {
		return err
	}
	defer t.Close()
	var steps []*pageRows
	for _, info := range chosen {
		steps = append(steps, &pageRows{info: info})
	}
	slices.SortFunc(steps, func(a, b *pageRows) int { return cmp.Compare(a.info.Step, b.info.Step) })
	shared := slices.ContainsFunc(p.Report.Sections, func(s attribute.Section) bool { return s.Shared })
	left, limit := 0, maxPageSpans
	err = t.Each(timeline.AllSteps, func(step int64, rows []timeline.Event) error {
		if !shared {
			take(steps, step, rows, &limit)
		}
		if i := slices.IndexFunc(steps, func(p *pageRows) bool { return p.info.Step == step }); i >= 0 {
			steps[i].own = slices.Clone(rows)
		}
		return nil
	})
	for _, s := range steps {
		left += p.spans.add(s.info, s.own, s.others, &t.Names, shared, maxPageSpans)
	}
	p.spans.sortLanes()
	var notes []string
	if left > 0 {
		notes = append(notes, fmt.Sprintf("the last %s spans of a step did not fit", thousands(int64(left))))
	}
	if p.spans.wild > 0 {
		notes = append(notes, fmt.Sprintf("spans with impossible times, which are not shown: %s",
			thousands(int64(p.spans.wild))))
	}
	if shared {
		notes = append(notes, "the ranks share one machine: each has the same spans, shown once")
	}
	p.note = strings.Join(notes, " · ")
	return err
}

// jobPoint is a stretch of the job.
type jobPoint struct {
	Start     int64   `json:"start_ns"`
	End       int64   `json:"end_ns"`
	Steps     float64 `json:"steps"`
	Sequences float64 `json:"sequences"` // in a step
	Tokens    float64 `json:"tokens_per_s"`
	Sampled   float64 `json:"sampled_per_s"`
}

// jobPoints is into how many stretches a job is cut.
const jobPoints = 240

// jobOf reads a steps table and cuts the job into stretches of equal length.
func jobOf(dir string) ([]jobPoint, error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, nil
	}
	first, last, n := int64(math.MaxInt64), int64(math.MinInt64), 0
	err := datasets.Read(dir, func(rows []datasets.Step) error {
		for i := range rows {
			first, last = min(first, rows[i].StartNS), max(last, rows[i].StartNS+rows[i].WallNS)
			n++
		}
		return nil
	})
	if err != nil || n < 2 || last <= first {
		return nil, err
	}
	points := make([]jobPoint, min(jobPoints, n))
	width := (last - first + int64(len(points)) - 1) / int64(len(points))
	for i := range points {
		points[i].Start, points[i].End = int64(i)*width, int64(i+1)*width
	}
	busy := make([]int64, len(points)) // ns of each stretch in which steps ran
	err = datasets.Read(dir, func(rows []datasets.Step) error {
		for i := range rows {
			spread(points, busy, &rows[i], first, width)
		}
		return nil
	})
	for i := range points {
		points[i].Sequences /= float64(max(1, busy[i]))
		points[i].Tokens /= float64(width) / 1e9
		points[i].Sampled /= float64(width) / 1e9
	}
	return points, err
}

// spread adds a step to the stretches that it lies in, by time.
func spread(points []jobPoint, busy []int64, s *datasets.Step, first, width int64) {
	start, end := s.StartNS-first, s.StartNS-first+max(1, s.WallNS)
	for at := max(0, start/width); at < int64(len(points)) && at*width < end; at++ {
		ns := min(end, (at+1)*width) - max(start, at*width)
		part := float64(ns) / float64(end-start)
		p := &points[at]
		busy[at] += ns
		p.Steps += part
		p.Sequences += float64(s.Sequences) * float64(ns)
		p.Tokens += float64(s.Tokens) * part
		p.Sampled += float64(s.Sampled) * part
	}
}

// WriteFile writes the page to a file, which is there only when it is whole.
func (p *Page) WriteFile(path string) error { return writeAside(path, p.Write) }

// Write writes the page. It is one file that needs no network.
func (p *Page) Write(w io.Writer) error {
	report, err := json.Marshal(p.Report.document())
	if err != nil {
		return err
	}
	page, err := json.Marshal(map[string]any{
		"spans": len(p.spans.columns.start), "kernels": orEmpty(p.spans.kernels), "lanes": orEmpty(p.spans.lanes),
		"steps": orEmpty(p.spans.steps),
		"job":   orEmpty(p.job), "isolated": orEmpty(p.Isolated), "tables": orEmpty(p.Tables), "note": p.note,
	})
	if err != nil {
		return err
	}
	spans := ""
	if len(p.spans.columns.start) > 0 {
		if spans, err = p.spans.columns.pack(); err != nil {
			return err
		}
	}
	text := func(name string) string {
		b, err := pageFiles.ReadFile("page/" + name)
		if err != nil {
			panic(err) // the file is part of the program
		}
		return string(b)
	}
	var script strings.Builder
	for _, name := range scripts {
		script.WriteString(text(name))
	}
	_, err = strings.NewReplacer("/*STYLE*/", text("page.css"), "/*SCRIPT*/", script.String(), "/*REPORT*/",
		string(report), "/*PAGE*/", string(page), "/*SPANS*/", spans).
		WriteString(w, text("page.html"))
	return err
}

func orEmpty[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

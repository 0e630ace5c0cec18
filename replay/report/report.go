package report

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"glmbatch/datasets"
	"glmbatch/kernels/roofline"
	"glmbatch/replay/attribute"
	"glmbatch/replay/timeline"
)

// Options say what to report.
type Options struct {
	By      attribute.By
	Steps   *timeline.Steps   // nil: all
	Kind    string            // only steps of this kind; "": all
	Machine *roofline.Machine // bounds are of it; nil: the trace's own GPU, if it is known

	NoMachine bool // no bounds at all
}

// Validate reports every fault.
func (o *Options) Validate() error {
	var errs []error
	if o.By != "" && !o.By.Known() {
		errs = append(errs, fmt.Errorf("cannot group by %q: there are %s", o.By, attribute.Groupings()))
	}
	if o.Steps != nil && (o.Steps.From < 0 || o.Steps.To < o.Steps.From) {
		errs = append(errs, fmt.Errorf("bad range of steps %d..%d", o.Steps.From, o.Steps.To))
	}
	return errors.Join(errs...)
}

// Report is what a timeline cost.
type Report struct {
	Source   string
	Rows     int64 // rows of the timeline that were read
	By       attribute.By
	Machine  *roofline.Machine
	Sections []attribute.Section // one for each kind of step, in order
	Host     []HostPhase         // of all steps that were read and, if those are all, of the time between them
	Outside  attribute.Outside   // device work of no step, where all steps were asked for
	Findings []Finding           // the most important first
	Recorded []Recorded          // how many of a job's steps these are, by kind; nil: of no files
	Warnings []string
	Again    *Again      // of a replay; nil: the step was recorded without spans
	Isolated []Isolation // of a replay; nil: nothing was run alone

	Throughput []StepKind // of all steps of a job, for programs that read the report
}

// Finding is something that stands out, in plain words.
type Finding struct {
	Code string `json:"code"` // short and stable: dominant, kv.cast, launch-bound, host-bound …
	Kind string `json:"kind"` // of the steps; "": the whole timeline
	Text string `json:"text"`
}

// Files returns the timeline files of an output folder, of a folder of timeline
// files, or of one file.
func Files(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("%s: no such file or folder", path)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	if shards, err := datasets.Shards(path); err != nil || len(shards) > 0 &&
		!isDir(filepath.Join(path, datasets.TimelineDir)) {
		return shardFiles(path, shards, err)
	}
	dir := path
	if _, err := os.Stat(filepath.Join(path, datasets.ManifestFile)); err == nil ||
		isDir(filepath.Join(path, datasets.TimelineDir)) {
		dir = filepath.Join(path, datasets.TimelineDir)
	}
	if !isDir(dir) {
		return nil, fmt.Errorf("%s: the run recorded no timeline (its --timeline was off)", path)
	}
	return datasets.SpanFiles(dir)
}

// shardFiles are the timelines of a job's shards, whose steps have numbers of their own.
func shardFiles(out string, shards []datasets.Shard, err error) ([]string, error) {
	if err != nil {
		return nil, err
	}
	var files []string
	for _, s := range shards {
		if dir := filepath.Join(out, s.Dir(), datasets.TimelineDir); isDir(dir) {
			found, err := datasets.SpanFiles(dir)
			if err != nil {
				return nil, err
			}
			files = append(files, found...)
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: its shards recorded no timeline (their --timeline was off, or they have not begun)",
			out)
	}
	return files, nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// Source is where a timeline is.
type Source struct {
	Path string          // an output folder, a folder of timeline files, or such a file
	Rows []datasets.Span // or its rows in memory, of which Path is the name; nil: in files
}

// open opens the timeline; with says what of its files is read besides.
func (s Source) open(with func(files []string) (*timeline.Reader, error), site timeline.SiteKind) (*timeline.Reader,
	error) {
	if s.Rows != nil {
		return timeline.Of(s.Rows, site), nil
	}
	files, err := Files(s.Path)
	if err != nil {
		return nil, err
	}
	return with(files)
}

// Load reads the timeline at path, an output folder or a timeline file, and
// reports what it cost.
func Load(path string, opt Options) (*Report, error) { return Source{Path: path}.Report(opt) }

// Report reports what the timeline cost.
func (s Source) Report(opt Options) (*Report, error) {
	r, _, err := s.report(opt)
	return r, err
}

// report also returns the steps that the report is of.
func (s Source) report(opt Options) (*Report, []stepInfo, error) {
	if err := opt.Validate(); err != nil {
		return nil, nil, err
	}
	site := opt.By.Site()
	t, err := s.open(func(files []string) (*timeline.Reader, error) { return timeline.OpenSites(files, site) }, site)
	if err != nil {
		return nil, nil, err
	}
	defer t.Close()
	if opt.Machine == nil && !opt.NoMachine {
		if m, ok := roofline.Of(t.Device); ok {
			opt.Machine = &m
		}
	}
	a := attribute.New(&t.Names, attribute.Options{By: opt.By, Machine: opt.Machine, Periods: t.Periods})
	steps := timeline.AllSteps
	if opt.Steps != nil {
		steps = *opt.Steps
	}
	var found []stepInfo
	var host hostBook
	err = t.Each(steps, func(step int64, rows []timeline.Event) error {
		if step >= 0 || opt.Steps == nil {
			host.add(rows, &t.Names)
		}
		if step < 0 {
			if opt.Steps == nil && opt.Kind == "" {
				a.Loose(rows)
			}
			return nil
		}
		ledgers := a.Step(step, rows)
		if len(ledgers) > 0 && (opt.Kind == "" || opt.Kind == ledgers[0].Kind) {
			info := stepInfo{Step: step, Kind: ledgers[0].Kind, rows: len(rows), time: timeOf(rows)}
			for i := range ledgers {
				info.Wall += ledgers[i].Wall
			}
			info.Wall /= int64(len(ledgers)) // of the sum: what each rank's part lost would add up
			found = append(found, info)
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	r := New(s.Path, a, opt)
	r.Rows, r.Host, r.Outside, r.Recorded = t.Rows, host.sorted(), a.Outside(), recordedOf(found)
	r.outside()
	r.imported(t.Findings)
	if len(r.Sections) == 0 {
		return nil, nil, fmt.Errorf("%s: the timeline has no device spans in %s", s.Path, opt.what())
	}
	return r, found, nil
}

func (o *Options) what() string {
	var s strings.Builder
	if o.Kind != "" {
		s.WriteString(o.Kind + " ")
	}
	s.WriteString("steps")
	if o.Steps != nil {
		fmt.Fprintf(&s, " %d to %d", o.Steps.From, o.Steps.To)
	}
	return s.String()
}

// New makes a report of what a has attributed.
func New(source string, a *attribute.Attribution, opt Options) *Report {
	r := &Report{Source: source, By: opt.By, Machine: opt.Machine, Warnings: a.Warnings()}
	if r.By == "" {
		r.By = attribute.ByClass
	}
	for _, s := range a.Sections() {
		if opt.Kind == "" || opt.Kind == s.Kind {
			r.Sections = append(r.Sections, s)
		}
	}
	r.find()
	return r
}

// Format is a way to write a report.
type Format struct {
	Name  string
	Help  string
	Write func(r *Report, w io.Writer, style Style) error
}

// Style is how text is shown.
type Style struct {
	Colour bool
	Width  int // columns; 0: DefaultWidth
}

// DefaultWidth is the width of text in columns.
const DefaultWidth = 100

// Formats has all formats, the default first.
var Formats = []Format{
	{"text", "tables for a terminal", (*Report).text},
	{"json", "the schema in the package's documentation", (*Report).json},
	{"csv", "one table, whose first column says which figures a row has; times in ns", (*Report).csv},
	{"markdown", "the tables, for a pull request", (*Report).markdown},
	{"bench", "Go benchmark lines for benchstat, a line a step", (*Report).bench},
}

// Write writes the report in a format.
func (r *Report) Write(w io.Writer, format string, style Style) error {
	var names []string
	for _, f := range Formats {
		if f.Name == format {
			return f.Write(r, w, style)
		}
		names = append(names, f.Name)
	}
	return fmt.Errorf("no format %q: there are %s", format, strings.Join(names, ", "))
}

package report

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"glmbatch/datasets"
	"glmbatch/kernels"
	"glmbatch/replay/attribute"
	"glmbatch/replay/timeline"
)

// Throughput is what the steps table of a job says: it is there without a timeline too.
type Throughput struct {
	Schema string     `json:"schema"`
	Source string     `json:"source"`
	Kinds  []StepKind `json:"kinds"`  // prefill, mixed, decode, as far as there are any, and all
	Energy *Energy    `json:"energy"` // of all steps; null: not measured, or not all were asked for

	whole bool // all steps were asked for
}

// ThroughputSchema names the JSON form of a [Throughput].
const ThroughputSchema = "glmbatch.throughput/1"

// StepKind sums the steps of one kind.
type StepKind struct {
	Kind      string  `json:"kind"`
	Steps     int64   `json:"steps"`
	Sequences int64   `json:"sequences"` // of all steps, as all below
	Tokens    int64   `json:"tokens"`    // rows computed
	Sampled   int64   `json:"sampled"`
	WallNS    int64   `json:"wall_ns"`
	MedianNS  int64   `json:"median_ns"`    // wall of one step
	MaxNS     int64   `json:"max_ns"`       // wall of the longest
	MaxStep   int64   `json:"max_step"`     // its number
	PerS      float64 `json:"tokens_per_s"` // while these steps ran
	SampledS  float64 `json:"sampled_per_s"`

	walls     []int64
	deviation float64 // of the walls: their standard deviation
}

// allKinds is the last of a throughput's kinds.
const allKinds = "all"

// ReadSteps sums the steps of an output folder or its shards; nil: it has none. kind
// "" are all kinds, nil steps are all.
func ReadSteps(path, kind string, steps *timeline.Steps) (*Throughput, error) {
	dirs := []string{filepath.Join(path, datasets.StepsDir)}
	if shards, err := datasets.Shards(path); err == nil && !isDir(dirs[0]) {
		dirs = nil
		for _, s := range shards {
			dirs = append(dirs, filepath.Join(path, s.Dir(), datasets.StepsDir))
		}
	}
	sums := map[string]*StepKind{allKinds: {Kind: allKinds}}
	found := false
	var energy energyBook
	for _, dir := range dirs {
		if !isDir(dir) {
			continue
		}
		found = true
		err := datasets.Read(dir, func(rows []datasets.Step) error {
			for i := range rows {
				s := &rows[i]
				if kind != "" && s.Kind != kind || steps != nil && (s.Step < steps.From || s.Step > steps.To) {
					continue
				}
				if sums[s.Kind] == nil {
					sums[s.Kind] = &StepKind{Kind: s.Kind}
				}
				sums[s.Kind].add(s)
				sums[allKinds].add(s)
				energy.add(s)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if !found {
		return nil, nil
	}
	t := &Throughput{Schema: ThroughputSchema, Source: path, whole: kind == "" && steps == nil}
	if t.whole {
		t.Energy = energy.of(sums[allKinds])
	}
	for _, name := range append(slices.Clone(kernels.StepKinds), allKinds) {
		k := sums[name]
		if k == nil || name == allKinds && k.Steps == 0 {
			continue
		}
		k.spread()
		if seconds := float64(k.WallNS) / 1e9; seconds > 0 {
			k.PerS, k.SampledS = float64(k.Tokens)/seconds, float64(k.Sampled)/seconds
		}
		t.Kinds = append(t.Kinds, *k)
	}
	return t, nil
}

func (k *StepKind) add(s *datasets.Step) {
	k.Steps++
	k.Sequences += int64(s.Sequences)
	k.Tokens += int64(s.Tokens)
	k.Sampled += int64(s.Sampled)
	k.WallNS += s.WallNS
	if k.walls = append(k.walls, s.WallNS); s.WallNS > k.MaxNS || k.Steps == 1 {
		k.MaxNS, k.MaxStep = s.WallNS, s.Step
	}
}

// spread fills in what the walls are like.
func (k *StepKind) spread() {
	k.MedianNS = attribute.MedianOf(k.walls).Median
	mean, sum := float64(k.WallNS)/float64(max(1, k.Steps)), 0.0
	for _, w := range k.walls {
		sum += (float64(w) - mean) * (float64(w) - mean)
	}
	k.deviation, k.walls = math.Sqrt(sum/float64(max(1, k.Steps-1))), nil
}

// of returns the sums of a kind; nil: there are none.
func (t *Throughput) of(kind string) *StepKind {
	for i := range t.Kinds {
		if t.Kinds[i].Kind == kind {
			return &t.Kinds[i]
		}
	}
	return nil
}

// Write writes the throughput in a format of a [Report], but bench.
func (t *Throughput) Write(w io.Writer, format string, style Style) error {
	tab := table{head: []string{"steps", "count", "sequences", "mean ms", "median ms", "worst ms", "its step",
		"tokens/s", "sampled/s", "time"}}
	all := t.of(allKinds)
	for _, k := range t.Kinds {
		if k.Kind == allKinds {
			tab.rule()
		}
		n := float64(k.Steps)
		tab.add(k.Kind, thousands(k.Steps), fmt.Sprintf("%.1f", float64(k.Sequences)/n), ms(float64(k.WallNS)/n),
			ms(float64(k.MedianNS)), ms(float64(k.MaxNS)), fmt.Sprint(k.MaxStep), figure(k.PerS), figure(k.SampledS),
			percent(share(k.WallNS, all.WallNS)))
	}
	switch format {
	case "json":
		return writeJSON(w, t)
	case "csv":
		c := csv.NewWriter(w)
		rows := [][]string{{"kind", "steps", "sequences", "tokens", "sampled", "wall_ns", "median_ns", "max_ns",
			"max_step", "tokens_per_s", "sampled_per_s"}}
		for _, k := range t.Kinds {
			row := []string{k.Kind}
			for _, n := range []int64{k.Steps, k.Sequences, k.Tokens, k.Sampled, k.WallNS, k.MedianNS, k.MaxNS,
				k.MaxStep} {
				row = append(row, strconv.FormatInt(n, 10))
			}
			rows = append(rows, append(row, strconv.FormatFloat(k.PerS, 'f', 3, 64),
				strconv.FormatFloat(k.SampledS, 'f', 3, 64)))
		}
		return c.WriteAll(rows)
	}
	if err := writeTable(w, tab, format, style); err != nil || !t.whole {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s\n", t.Energy.text())
	return err
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// writeTable writes a table alone.
func writeTable(w io.Writer, t table, format string, style Style) error {
	switch format {
	case "markdown":
		return t.markdown(w)
	case "text":
		if style.Width == 0 {
			style.Width = DefaultWidth
		}
		p := &printer{w: w, style: style}
		p.table(t)
		return p.err
	}
	return fmt.Errorf("without a timeline there is no format %q: text, markdown, json or csv", format)
}

// ThroughputDiff compares the steps tables of two jobs.
type ThroughputDiff struct {
	Schema string            `json:"schema"`
	A      string            `json:"a"`
	B      string            `json:"b"`
	Kinds  []ThroughputKinds `json:"kinds"`
}

// ThroughputKinds are the steps of one kind in both; null: there are none.
type ThroughputKinds struct {
	Kind string    `json:"kind"`
	A    *StepKind `json:"a"`
	B    *StepKind `json:"b"`
}

// CompareSteps compares the steps of two jobs.
func CompareSteps(a, b *Throughput) *ThroughputDiff {
	d := &ThroughputDiff{Schema: "glmbatch.throughput-diff/1", A: a.Source, B: b.Source, Kinds: []ThroughputKinds{}}
	for _, kind := range append(slices.Clone(kernels.StepKinds), allKinds) {
		if x, y := a.of(kind), b.of(kind); x != nil || y != nil {
			d.Kinds = append(d.Kinds, ThroughputKinds{kind, x, y})
		}
	}
	return d
}

// Write writes the difference in a format of [DiffFormats].
func (d *ThroughputDiff) Write(w io.Writer, format string, style Style) error {
	if format == "json" {
		return writeJSON(w, d)
	}
	tab := table{head: []string{"steps", "A", "B", "A ms a step", "B ms a step", "A tokens/s", "B tokens/s", "change"}}
	for _, k := range d.Kinds {
		x, y := k.A, k.B
		change := "only in A"
		switch {
		case x == nil:
			x, change = &StepKind{}, "only in B"
		case y == nil:
			y = &StepKind{}
		case x.PerS > 0:
			change = fmt.Sprintf("%+.1f %%", 100*(y.PerS-x.PerS)/x.PerS)
		default:
			change = ""
		}
		step := func(k *StepKind) string {
			if k.Steps == 0 {
				return ""
			}
			return ms(float64(k.WallNS) / float64(k.Steps))
		}
		tab.add(k.Kind, thousands(x.Steps), thousands(y.Steps), step(x), step(y), figure(x.PerS), figure(y.PerS),
			change)
	}
	if format == "text" {
		if _, err := fmt.Fprintf(w, "A is %s\nB is %s\n\n", strings.TrimSpace(d.A),
			strings.TrimSpace(d.B)); err != nil {
			return err
		}
	}
	return writeTable(w, tab, format, style)
}

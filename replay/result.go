package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"glmbatch/datasets"
	"glmbatch/kernels"
	"glmbatch/replay/attribute"
	"glmbatch/replay/report"
	"glmbatch/telemetry"
)

// Schema names the JSON form of a result.
const Schema = "glmbatch.replay/1"

// Result is what a step run again gave.
type Result struct {
	Capture    *Capture
	Device     kernels.Info
	Verdict    Verdict
	Figures                          // of the step as captured
	Conditions *telemetry.Conditions // while the repeats ran; nil: nobody knows
	WhatIf     []Change
}

// Figures are the measurements of one variant of a step.
type Figures struct {
	Name     string
	Rows     []datasets.Span // the timeline: a step a repeat
	Report   *report.Report
	Wall     attribute.Stat // of one repeat
	Coverage *Coverage      // nil: no call was run alone

	alone []alone // by call
}

// Change is a step with a what-if.
type Change struct {
	Figures
	Note       string
	SameTokens int // sampled tokens that are the step's own
	Tokens     int
	Diff       *report.Diff // from the step as it is
}

// count compares the tokens of the last run.
func (ch *Change) count(s *restored, tokens []int32) {
	for i, t := range s.tokens() {
		if i < len(tokens) && t == tokens[i] {
			ch.SameTokens++
		}
	}
}

// compare sets the change beside the step as it is.
func (ch *Change) compare(base *Figures) (err error) {
	if len(base.alone) > 0 {
		ch.Coverage = coverage(base.alone, ch.Wall.Median)
	}
	a, b := reportOf(base.Name, base.Rows, report.DiffOptions("")), reportOf(ch.Name, ch.Rows, report.DiffOptions(""))
	if ch.Diff, err = report.Compare(a, b); err != nil {
		return err
	}
	text := fmt.Sprintf("%s: wall %s ms a step, %s ms without the change (%+.1f %%)", ch.Name, ms(ch.Wall.Median),
		ms(base.Wall.Median),
		100*(float64(ch.Wall.Median)/float64(max(1, base.Wall.Median))-1))
	if ch.Note != "" {
		text += "; " + ch.Note
	}
	ch.say("what-if", text)
	if ch.Tokens > 0 {
		ch.say("tokens", fmt.Sprintf("%d of %d sampled tokens are the recorded ones", ch.SameTokens, ch.Tokens))
	}
	if own := coverage(base.alone, base.Wall.Median); own != nil {
		ch.say("coverage", fmt.Sprintf("alone, the step's own calls explain %s of this step, and %s of it without "+
			"the change", percent(ch.Coverage.Warm), percent(own.Warm)))
	}
	return nil
}

// say adds a finding after those of the timeline.
func (f *Figures) say(code, text string) {
	f.Report.Findings = append(f.Report.Findings, report.Finding{Code: code, Text: text})
}

// explain puts what the replay found beside what the timeline says.
func (r *Result) explain() {
	r.say("verified", r.Verdict.Text)
	text := fmt.Sprintf("wall %s ms a step", ms(r.Wall.Median))
	r.Report.Again = r.again()
	if was := r.Capture.Times.Wall.NS(); was > 0 && r.Report.Again == nil {
		text += fmt.Sprintf(", recorded %s ms (%+.1f %%)", ms(was), 100*(float64(r.Wall.Median)/float64(was)-1))
	}
	if r.Capture.KV == KVSeeded && !r.Capture.Unended() {
		text += "; cache entries are made from a seed, outputs are those of the same entries at the time of capture"
	}
	r.say("wall", text)
	if r.Report.Again != nil {
		r.say("recorded", r.Report.Again.Text)
	}
	if c := r.Coverage; c != nil {
		text = fmt.Sprintf("alone, the same calls take %s of the step's wall time with a warm cache", percent(c.Warm))
		if c.Cold > 0 {
			text += fmt.Sprintf(", %s with a cold one", percent(c.Cold))
		}
		r.say("coverage", text)
	}
}

func ms(ns int64) string { return fmt.Sprintf("%.3f", float64(ns)/1e6) }

// Write writes the result in a format of package report.
func (r *Result) Write(w io.Writer, format string, style report.Style) error {
	switch format {
	case "json":
		return r.json(w)
	case "csv":
		return WriteCSV(w, []*Result{r})
	}
	for i := range r.WhatIf {
		ch := &r.WhatIf[i]
		if format == "bench" {
			fmt.Fprintf(w, "what-if: %s\n", ch.Name)
		}
		if err := ch.Report.Write(w, format, style); err != nil {
			return err
		}
		if slices.Contains(report.DiffFormats, format) {
			fmt.Fprintf(w, "\n%s against %s\n\n", ch.Diff.B, ch.Diff.A)
			if err := ch.Diff.Write(w, format, style); err != nil {
				return err
			}
		}
		if format != "bench" {
			fmt.Fprintln(w)
		}
	}
	if format == "bench" {
		fmt.Fprintln(w, "what-if: none")
	}
	return r.Report.Write(w, format, style)
}

// WriteCSV writes results as one table: a variant is a result's, or one of its changes;
// of several results it has the capture's name before it.
func WriteCSV(w io.Writer, results []*Result) error {
	var variants []report.Variant
	for _, r := range results {
		prefix := ""
		if len(results) > 1 {
			prefix = filepath.Base(r.Capture.File) + ": "
		}
		variants = append(variants, report.Variant{Name: prefix + r.Name, Report: r.Report})
		for i := range r.WhatIf {
			ch := &r.WhatIf[i]
			variants = append(variants, report.Variant{Name: prefix + ch.Name, Report: ch.Report, Diff: ch.Diff})
		}
	}
	return report.WriteCSV(w, variants)
}

type jsonResult struct {
	Schema   string          `json:"schema"`
	Capture  jsonCapture     `json:"capture"`
	Device   jsonDevice      `json:"device"`
	Verified Verdict         `json:"verified"`
	Wall     attribute.Stat  `json:"wall"`
	Report   json.RawMessage `json:"report"`
	Coverage *Coverage       `json:"coverage"`
	WhatIf   []jsonChange    `json:"what_if"`
}

type jsonCapture struct {
	File   string  `json:"file"`
	Step   int64   `json:"step"`
	Kind   string  `json:"kind"`
	Ranks  int     `json:"ranks"`
	Model  string  `json:"model"`
	Device string  `json:"device"`
	KV     string  `json:"kv"`
	WallNS int64   `json:"recorded_wall_ns"`
	Rows   []int64 `json:"rows,omitempty"`
}

type jsonDevice struct {
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	Detail string `json:"detail"`
}

type jsonChange struct {
	Name       string          `json:"name"`
	Note       string          `json:"note"`
	SameTokens int             `json:"same_tokens"`
	Tokens     int             `json:"tokens"`
	Wall       attribute.Stat  `json:"wall"`
	Coverage   *Coverage       `json:"coverage"`
	Report     json.RawMessage `json:"report"`
	Diff       *report.Diff    `json:"diff"`
}

// json writes the schema that the package's documentation lists.
func (r *Result) json(w io.Writer) error {
	c := r.Capture
	d := jsonResult{Schema: Schema, Capture: jsonCapture{c.File, c.Step, c.Kind, c.Ranks, c.Model, c.Device.Kind, c.KV,
		c.Times.Wall.NS(), c.Rows},
		Device: jsonDevice{r.Device.Kind, r.Device.Name,
			r.Device.Detail}, Verified: r.Verdict, Wall: r.Wall, Coverage: r.Coverage}
	var err error
	if d.Report, err = document(r.Report); err != nil {
		return err
	}
	for i := range r.WhatIf {
		ch := &r.WhatIf[i]
		j := jsonChange{Name: ch.Name, Note: ch.Note, SameTokens: ch.SameTokens, Tokens: ch.Tokens, Wall: ch.Wall,
			Coverage: ch.Coverage, Diff: ch.Diff}
		if j.Report, err = document(ch.Report); err != nil {
			return err
		}
		d.WhatIf = append(d.WhatIf, j)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(d)
}

func document(r *report.Report) (json.RawMessage, error) {
	if r == nil {
		return json.RawMessage("null"), nil
	}
	var b bytes.Buffer
	err := r.Write(&b, "json", report.Style{})
	return b.Bytes(), err
}

package main

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"glmbatch/datasets"
	"glmbatch/kernels/roofline"
	"glmbatch/replay/attribute"
	"glmbatch/replay/report"
	"glmbatch/replay/timeline"
)

// reportFlags are the options of glmbatch report.
type reportFlags struct {
	format  string
	by      string
	kind    string
	machine string
	html    string
	step    int64
}

func newReportCommand() *cobra.Command {
	var f reportFlags
	c := &cobra.Command{
		Use:   "report OUT|TIMELINE|CAPTURE",
		Short: "Say what the steps of a run or an imported trace cost, per kernel class",
		Long: `report reads the timeline of a run's output folder, a timeline file of glmbatch
import, or captured steps as they were recorded (a file or folder of run --capture),
and prints for prefill and decode apart what each kernel class costs: calls, self
time, share, GB/s and GFLOP/s. Every table adds up to the wall time: overlap, gaps by
cause and what is unexplained are rows of their own. Times are per step, means over
steps and ranks; the interval is that of the median over steps, and lies below the
mean where few steps are slow: the worst step is named. Of a job it says how many of
each kind of step were recorded, and how far their mean may be from that of all.
Below are the steps of a job by kind, with tokens per second; they are all there is of a job
that recorded no timeline (not as bench lines or a page).

Formats:
` + formatHelp() + `
Machines for --machine: "this" for the CPU of this one, "none", and
  ` + machineHelp() + `
"this" is measured once, then kept in the user's cache folder; glmbatch doctor measures anew.`,
		Example: `  glmbatch report out
  # kernel by kernel, decode only
  glmbatch report out --by kernel --kind decode
  # a page with a timeline to zoom, and a roofline plot
  glmbatch report out --html report.html
  # a captured step as it was recorded
  glmbatch report out/captures/step-00000042.arrow
  # for benchstat, and for a pull request
  glmbatch report out --format bench > new.txt
  glmbatch report timeline.parquet --format markdown --machine h200`,
		Args: exactArgs(1, "an output folder, a timeline file or a capture"),
		RunE: func(c *cobra.Command, args []string) error {
			return runReport(f, args[0], c.OutOrStdout())
		},
	}
	c.Flags().StringVar(&f.format, "format", report.Formats[0].Name, "text, json, csv, markdown or bench")
	c.Flags().StringVar(&f.by, "by", string(attribute.ByClass), "also group by "+attribute.Groupings())
	c.Flags().StringVar(&f.kind, "kind", "", "only prefill, decode, mixed or step (unknown) steps")
	c.Flags().StringVar(&f.machine, "machine", "",
		"show how far kernels are from the roofline of the machine with this `NAME` (default: the GPU that an "+
			"imported trace names, and this for the --html of CPU runs); none: no roofline")
	c.Flags().StringVar(&f.html, "html", "", "write a page with pictures to this `FILE` instead; it needs no network")
	c.Flags().Int64Var(&f.step, "step", -1, "only the step with this number (-1: all)")
	return c
}

// machineHelp lists the machines on lines of at most eight.
func machineHelp() string {
	var b strings.Builder
	for i, name := range roofline.Names() {
		switch {
		case i == 0:
		case i%8 == 0:
			b.WriteString(",\n  ")
		default:
			b.WriteString(", ")
		}
		b.WriteString(name)
	}
	return b.String()
}

func formatHelp() string {
	var b strings.Builder
	for _, f := range report.Formats {
		fmt.Fprintf(&b, "  %-9s %s\n", f.Name, f.Help)
	}
	return b.String()
}

func runReport(f reportFlags, path string, stdout io.Writer) error {
	var formats []string
	for _, known := range report.Formats {
		formats = append(formats, known.Name)
	}
	if err := oneOf("format", f.format, formats...); err != nil {
		return err
	}
	if f.kind != "" {
		if err := oneOf("kind", f.kind, attribute.Kinds...); err != nil {
			return err
		}
	}
	if err := inRange("step", f.step, -1, math.MaxInt64); err != nil {
		return err
	}
	opt := report.Options{By: attribute.By(f.by), Kind: f.kind}
	if f.step >= 0 {
		opt.Steps = &timeline.Steps{From: f.step, To: f.step}
	}
	var err error
	if f.html != "" && f.machine == "" && ranOnCPU(path) {
		f.machine = "this" // a page has a roofline plot
	}
	if opt.NoMachine = f.machine == "none"; opt.NoMachine {
		f.machine = ""
	}
	if opt.Machine, err = machineFor(f.machine); err != nil {
		return withCode(exitInput, err)
	}
	source, err := timelineOf(path)
	if err != nil {
		return withCode(exitInput, err)
	}
	if f.html != "" {
		return withCode(exitInput, writePage(source, f.html, opt, stdout))
	}
	style := styleOf(stdout)
	steps, err := report.ReadSteps(path, f.kind, opt.Steps)
	if err != nil {
		return withCode(exitInput, err)
	}
	if steps != nil && !hasTimeline(path) { // recorded without one
		return withCode(exitInput, steps.Write(stdout, f.format, style))
	}
	if os.Getenv("GOGC") == "" {
		// What a report keeps is small beside what it reads: collecting it more often costs
		// little time, and saves memory.
		defer debug.SetGCPercent(debug.SetGCPercent(50))
	}
	r, err := source.Report(opt)
	if err != nil {
		return withCode(exitInput, err)
	}
	r.Beside(steps)
	if err := r.Write(stdout, f.format, style); err != nil {
		return err
	}
	if steps == nil || len(steps.Kinds) == 0 || f.format != "text" && f.format != "markdown" {
		return nil
	}
	fmt.Fprintln(stdout)
	return steps.Write(stdout, f.format, style)
}

// hasTimeline reports whether path has spans: other folders have their steps alone.
func hasTimeline(path string) bool {
	files, err := report.Files(path)
	return err == nil && len(files) > 0
}

// ranOnCPU reports whether path is the output folder of a run on a CPU.
func ranOnCPU(path string) bool {
	var m struct {
		Model struct {
			Device string `json:"device"`
		} `json:"model"`
	}
	b, err := os.ReadFile(filepath.Join(path, datasets.ManifestFile))
	return err == nil && json.Unmarshal(b, &m) == nil && m.Model.Device == "cpu"
}

// writePage writes the report as one HTML file.
func writePage(s report.Source, out string, opt report.Options, stdout io.Writer) error {
	p, err := s.Page(opt)
	if err != nil {
		return err
	}
	if err := p.WriteFile(out); err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, out)
	return err
}

// styleOf uses a terminal's width, and colours if it wants them.
func styleOf(w io.Writer) report.Style {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return report.Style{}
	}
	s := report.Style{Colour: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
	if n, _, err := term.GetSize(int(file.Fd())); err == nil {
		s.Width = min(max(n, 80), 160) // tables need 80
	}
	return s
}

// machineFor returns a machine by name; nil for "".
func machineFor(name string) (*roofline.Machine, error) {
	switch name {
	case "":
		return nil, nil
	case "this":
		path, err := machineFile()
		if err != nil {
			return nil, fmt.Errorf("cannot measure this machine: %w", err)
		}
		m := roofline.Cached(path, 0)
		return &m, nil
	}
	m, ok := roofline.Named(name)
	if !ok {
		return nil, errors.New(`no machine "` + name + `": there are this, ` + strings.Join(roofline.Names(), ", "))
	}
	return &m, nil
}

// machineFile is where the figures of this machine's CPU are kept.
func machineFile() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(roofline.CPU()))
	return filepath.Join(dir, "glmbatch", fmt.Sprintf("machine-%x.json", sum[:6])), nil
}

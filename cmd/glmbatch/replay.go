package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"glmbatch/datasets"
	"glmbatch/datasets/demo"
	"glmbatch/engine/checkpoint"
	"glmbatch/engine/glm5"
	"glmbatch/engine/synth"
	"glmbatch/kernels"
	"glmbatch/kernels/ranks"
	"glmbatch/replay"
	"glmbatch/replay/attribute"
	"glmbatch/replay/report"
	"glmbatch/units"
)

// replayFlags are the options of glmbatch replay.
type replayFlags struct {
	model   string
	device  deviceFlags
	o       replay.Options
	by      string
	format  string
	machine string
	html    string
	whatIf  []string
	skip    []string
	cold    string

	several bool // captures
}

func newReplayCommand() *cobra.Command {
	var f replayFlags
	c := &cobra.Command{
		Use:   "replay CAPTURE...",
		Short: "Run a captured step again and say what each kernel class costs",
		Long: `replay loads the captured step's model, restores inputs and cache entries, runs the
step again and compares its outputs with the recorded ones, bit for bit. Then it measures
the step's kernel classes:

  in place      self time as the step runs, over --repeat runs
  alone         the same calls each by itself, with a warm and a cold cache
  without it    how much shorter the step is without the class, in pairs of runs, with
                the capture's routing and selections
  bound         the least time on the machine of --machine

The step as it was recorded is set beside it, class by class, with what the difference
is as far as it was measured: a call that stalled, the host, or all calls alike.

Captures come from glmbatch run --capture. Folders stand for the captures below them. Of
several captures --format json is a document a line, and csv one table.

Changes for --what-if (repeatable), each set beside the step as it is:

  kv=cast-pool      each layer first copies its whole FP8 cache to BF16
  kv=cast-active    each layer first copies the batch's pages only
  kv=in-place       attention reads the cache as it is
  kv-cache=FORMAT   the caches as f32, bf16 or fp8
  tp=N              on N ranks
  drop=CLASS        without the calls of a class
  scale=CLASS:F     the calls of a class take F times as long (nothing is run)
` + exitHelp,
		Example: `  glmbatch run --demo --out out --capture decode:first=1
  glmbatch replay out/captures
  # what it would cost to copy a cache of 262,144 tokens in each layer
  glmbatch replay out/captures --what-if kv=cast-pool --pool-tokens 262144`,
		RunE: func(c *cobra.Command, args []string) error {
			return runReplay(c.Context(), &f, args, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	p := c.Flags()
	p.SortFlags = false
	p.StringVarP(&f.model, "model", "m", "", "checkpoint folder, or demo (default: the captured one)")
	f.device.add(p)
	p.IntVar(&f.o.Repeat, "repeat", 20, "runs of the step that count")
	p.IntVar(&f.o.Warmup, "warmup", 3, "runs before them")
	p.StringVar(&f.by, "by", string(attribute.ByClass), "also group by "+attribute.Groupings())
	p.StringVar(&f.format, "format", report.Formats[0].Name, "text, json, csv, markdown or bench")
	p.StringVar(&f.o.Verify, "verify", replay.VerifyOutputs,
		"what must equal the capture: outputs, or calls (each call's, if captured)")
	p.StringArrayVar(&f.whatIf, "what-if", nil, "a change to run the step with (repeatable)")
	p.IntVar(&f.o.PoolTokens, "pool-tokens", 0, "tokens in the caches (default: as captured)")
	p.StringSliceVar(&f.skip, "skip", nil, "leave out: alone, marginal")
	p.StringVar(&f.cold, "evict", "auto", "memory to walk between calls with a cold cache: a size, or none")
	p.StringVar(&f.machine, "machine", "", "machine for bounds: this, or one that report --help lists")
	p.StringSliceVar(&f.o.Allow, "allow", nil, "what may differ from the capture: model, device, version")
	p.StringVar(&f.html, "html", "", "also write a page with pictures to this `FILE`; one capture only")
	return c
}

// options turns the flags into the options of a replay.
func (f *replayFlags) options() (replay.Options, error) {
	o := f.o
	o.By = attribute.By(f.by)
	var errs []error
	for _, s := range f.whatIf {
		w, err := replay.ParseWhatIf(s)
		errs = append(errs, err)
		o.WhatIf = append(o.WhatIf, w)
	}
	for _, s := range f.skip {
		o.NoAlone, o.NoMarginal = o.NoAlone || s == "alone", o.NoMarginal || s == "marginal"
		errs = append(errs, oneOf("skip", s, "alone", "marginal"))
	}
	var formats []string
	for _, x := range report.Formats {
		formats = append(formats, x.Name)
	}
	errs = append(errs, f.device.validate(), oneOf("format", f.format, formats...))
	switch {
	case o.Warmup < 0:
		errs = append(errs, fmt.Errorf("--warmup %d: it must not be negative", o.Warmup))
		o.Warmup = 0
	case o.Warmup == 0:
		o.Warmup = -1 // as the options have it
	}
	if o.Repeat == 0 {
		errs = append(errs, errors.New("--repeat 0: at least one run"))
	}
	errs = append(errs, o.Validate())
	var err error
	switch f.cold {
	case "auto":
		o.Evict = evictBytes(f.device.resolved())
	case "none":
	default:
		if o.Evict, err = units.ParseBytes(f.cold); err != nil {
			errs = append(errs, fmt.Errorf("--evict: %w", err))
		}
	}
	o.Machine, err = machineFor(f.machine)
	return o, errors.Join(append(errs, err)...)
}

// evictBytes is memory twice as large as the last cache of a device.
func evictBytes(device string) int64 {
	if device != "cpu" {
		return 256 << 20
	}
	text, err := os.ReadFile("/sys/devices/system/cpu/cpu0/cache/index3/size")
	if err == nil {
		if k, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(string(text)), "K"), 10, 32); err == nil {
			return min(2*k<<10, 256<<20)
		}
	}
	return 64 << 20
}

func runReplay(ctx context.Context, f *replayFlags, args []string, stdout, stderr io.Writer) error {
	o, err := f.options()
	if err != nil {
		return withCode(exitInput, err)
	}
	files, err := captureFiles(args)
	if err != nil {
		return withCode(exitInput, err)
	}
	if f.html != "" && len(files) > 1 {
		return withCode(exitInput, fmt.Errorf("--html makes the page of one capture, there are %d", len(files)))
	}
	if f.html != "" {
		if err := writable("html", filepath.Dir(f.html)); err != nil {
			return withCode(exitInput, err)
		}
	}
	o.Versions, o.Stop = versions(), ctx.Err
	f.several = len(files) > 1
	say := newSpeaker(stderr)
	var results []*replay.Result // of a format that is one table of all captures
	for i, file := range files {
		if err := ctx.Err(); err != nil {
			return withCode(exitInterrupted, fmt.Errorf("interrupted: %w", err))
		}
		if len(files) > 1 && f.format == report.Formats[0].Name {
			if i > 0 {
				fmt.Fprintln(stdout)
			}
			fmt.Fprintf(stdout, "%s\n\n", file)
		}
		c, err := replay.Load(file)
		if err != nil {
			return withCode(exitInput, err)
		}
		if say.tty {
			say.line("replaying %s, a step of %s …", file, c.Model)
		}
		r, err := f.replay(ctx, c, o, stdout)
		if err != nil {
			return errors.Join(fmt.Errorf("%s: %w", file, err), f.writeAll(stdout, results))
		}
		if f.format != "csv" {
			if err := f.write(stdout, r); err != nil {
				return err
			}
			continue
		}
		r.Capture.Pages, r.Rows = nil, nil // which are no longer needed
		results = append(results, r)
	}
	return f.writeAll(stdout, results)
}

// write writes a result. Documents of several captures are JSON lines.
func (f *replayFlags) write(w io.Writer, r *replay.Result) error {
	if !f.several || f.format != "json" {
		return r.Write(w, f.format, styleOf(w))
	}
	var document, line bytes.Buffer
	if err := r.Write(&document, f.format, report.Style{}); err != nil {
		return err
	}
	if err := json.Compact(&line, document.Bytes()); err != nil {
		return err
	}
	line.WriteByte('\n')
	_, err := w.Write(line.Bytes())
	return err
}

// writeAll writes results as one table.
func (f *replayFlags) writeAll(w io.Writer, results []*replay.Result) error {
	if len(results) == 0 {
		return nil
	}
	return replay.WriteCSV(w, results)
}

// captureFiles are the captures that arguments name.
func captureFiles(args []string) ([]string, error) {
	var files []string
	for _, a := range args {
		info, err := os.Stat(a)
		if err != nil {
			return nil, fmt.Errorf("%s: no such file or folder", a)
		}
		if !info.IsDir() {
			files = append(files, a)
			continue
		}
		below := files[len(files):]
		for _, pattern := range []string{"step-*.arrow", datasets.RowCaptures, "captures/step-*.arrow",
			"captures/" + datasets.RowCaptures} {
			found, err := filepath.Glob(filepath.Join(a, pattern))
			if err != nil {
				return nil, err
			}
			below = append(below, found...)
		}
		if len(below) == 0 {
			return nil, fmt.Errorf("%s has no captures: glmbatch run --capture makes them", a)
		}
		files = append(files, below...)
	}
	if len(files) == 0 {
		return nil, errors.New("no captures: name files or folders")
	}
	return files, nil
}

// replay runs one capture.
func (f *replayFlags) replay(ctx context.Context, c *replay.Capture, o replay.Options,
	stdout io.Writer) (r *replay.Result, err error) {
	ck, err := f.checkpoint(c)
	if err != nil {
		return nil, withCode(exitInput, err)
	}
	l := &modelLoader{device: &f.device, ck: ck}
	defer func() { err = errors.Join(err, l.close(), ck.Close()) }()
	if o.Hash, err = ck.Hash(); err != nil {
		return nil, withCode(exitInput, err)
	}
	load := func(o glm5.Options, n int) (*glm5.Model, error) { return l.load(ctx, o, n) }
	watch, end, _ := f.device.sampler(c.Ranks)
	defer end()
	o.Since = watch.Since
	r, err = replay.Run(c, load, o)
	switch {
	case errors.Is(err, replay.ErrMismatch):
		if f.format == "json" {
			_ = f.write(stdout, r) // the error is told in any case
		}
		return nil, withCode(exitCheck, err)
	case errors.Is(err, context.Canceled):
		return nil, withCode(exitInterrupted, fmt.Errorf("interrupted: %w", err))
	case errors.Is(err, kernels.ErrMemory), errors.Is(err, kernels.ErrDevice):
		return nil, deviceError(err, "a smaller --pool-tokens")
	case err != nil:
		return nil, withCode(exitInput, err)
	}
	if f.html != "" {
		if err := writeReplayPage(r, o, f.html); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// checkpoint opens the captured model, or the one that was named.
func (f *replayFlags) checkpoint(c *replay.Capture) (*checkpoint.Checkpoint, error) {
	switch {
	case f.model == "" && c.Model == demoName:
		return checkpoint.FromFiles(demo.Files())
	case f.model == "" && strings.HasPrefix(c.Model, synth.RecipePrefix):
		return synth.Remake(c.Model)
	case f.model == "":
		ck, err := checkpoint.Open(c.Model)
		if err != nil {
			return nil, fmt.Errorf("the captured model: %w; name the checkpoint with --model", err)
		}
		return ck, nil
	}
	return openCheckpoint(f.model)
}

// demoName is what manifests and captures call the demo checkpoint.
const demoName = "demo"

// modelLoader loads one model at a time.
type modelLoader struct {
	device *deviceFlags
	ck     *checkpoint.Checkpoint
	group  *ranks.Group
}

func (l *modelLoader) load(ctx context.Context, o glm5.Options, n int) (*glm5.Model, error) {
	if err := l.close(); err != nil {
		return nil, err
	}
	g, err := l.device.open(n)
	if err != nil {
		return nil, err
	}
	l.group = g
	return glm5.Load(ctx, l.ck, g, o)
}

func (l *modelLoader) close() error {
	if l.group == nil {
		return nil
	}
	g := l.group
	l.group = nil
	return g.Close()
}

// writeReplayPage writes the page of a replay's repeats.
func writeReplayPage(r *replay.Result, o replay.Options, path string) error {
	p, err := report.Source{Path: r.Capture.File, Rows: r.Rows}.Page(report.Options{Machine: o.Machine})
	if err != nil {
		return err
	}
	p.Report.Findings, p.Isolated = r.Report.Findings, r.Report.Isolated
	if r.Report.Again != nil {
		p.AddAgain(r.Report.Again)
	}
	for i := range r.WhatIf {
		ch := &r.WhatIf[i]
		var notes []string
		for _, f := range ch.Report.Findings {
			notes = append(notes, f.Text)
		}
		p.AddWhatIf(ch.Name, notes, ch.Diff)
	}
	return p.WriteFile(path)
}

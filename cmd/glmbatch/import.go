package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"glmbatch/datasets"
	"glmbatch/replay/importer"
	"glmbatch/replay/report"
	"glmbatch/units"
)

// importFlags are the options of glmbatch import.
type importFlags struct {
	out          string
	unclassified bool
	rules        string
	options      importer.Options
}

// read is one of the importer's readers.
type read func([]string, importer.Options, func([]datasets.Span) error) (*importer.Summary, error)

func newImportCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "import",
		Short: "Turn a trace of another program into a timeline for report, diff and export",
		Args:  noCommand,
		RunE:  showHelp,
	}
	c.AddCommand(
		newImportFormat(importer.Torch, "torch FILE...",
			"Import torch.profiler traces (.json, .json.gz), one file a rank",
			`torch reads traces of torch.profiler and writes one timeline. The rank of a file is that
of its distributedInfo, or of its name (rank3, TP-3), or counts from --rank. Several ranks are
aligned on the ends of their collectives and refused if they do not fit.`,
			`  glmbatch import torch trace.json.gz --out timeline.parquet
  glmbatch import torch trace-rank*.json --out timeline.parquet`),
		newImportFormat(importer.Nsys, "nsys FILE|FOLDER...",
			"Import Nsight Systems exports (SQLite, parquetdir, arrowdir)",
			`nsys reads what "nsys export --type sqlite", "parquetdir" or "arrowdir" wrote; nsys itself is
not needed. Record with --cuda-graph-trace=node, or the kernels of CUDA graphs are missing.`,
			`  nsys export --type sqlite --output profile.sqlite profile.nsys-rep
  glmbatch import nsys profile.sqlite --out timeline.parquet`),
	)
	return c
}

func newImportFormat(r read, use, short, long, example string) *cobra.Command {
	var f importFlags
	c := &cobra.Command{
		Use:   use,
		Short: short,
		Long: long + `

The trace is checked first. Events that cannot be true are left out and counted, and what
makes totals or rankings doubtful is stored with the timeline and shown by every report. A
trace without GPU events, or of ranks that do not fit, is refused.

Kernels get their class from their names. Copies and casts are sized from the launch grid;
one as large as the whole KV pool becomes class kv.cast. Say --kv-slots and --kv-width where
the pool is not found by itself. What has no class: --unclassified prints rules to fill in, and
--rules reads them.`,
		Example: example,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return withCode(exitInput, fmt.Errorf("no trace given (see '%s --help')", c.CommandPath()))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			f.options.SetRank = c.Flags().Changed("rank")
			err := f.run(r, args, c.OutOrStdout())
			printRefusal(c.ErrOrStderr(), err)
			return err
		},
	}
	c.Flags().StringVarP(&f.out, "out", "o", "", "`FILE` to write the timeline to, a .parquet file")
	c.Flags().BoolVar(&f.unclassified, "unclassified", false,
		"print rules to fill in for kernels without a class; --out is not needed")
	c.Flags().StringVar(&f.rules, "rules", "",
		"rules for classes of kernels from this `FILE`, tried first: a class and a pattern a line")
	c.Flags().Int32Var(&f.options.Rank, "rank", 0, "the first file's rank, whatever the files say; the others count on")
	c.Flags().Int64Var(&f.options.KVSlots, "kv-slots", 0, "slots of the KV pool; 0: found by size")
	c.Flags().Int64Var(&f.options.KVWidth, "kv-width", 0, "values of a slot in one layer; 0: 576, GLM-5's latent cache")
	c.Flags().BoolVar(&f.options.AllowUnaligned, "allow-unaligned", false,
		"keep ranks whose clocks do not fit together")
	c.Flags().Int64Var(&f.options.MaxResidualNS, "max-residual-ns", 0,
		"how far ends of one collective may lie apart after alignment; 0: 100000")
	c.Flags().IntVar(&f.options.MaxRows, "max-rows", 0,
		"refuse traces with more GPU activities and API calls; 0: 100 million")
	return c
}

func (f *importFlags) run(r read, files []string, out io.Writer) error {
	if err := f.readRules(); err != nil {
		return withCode(exitInput, err)
	}
	if err := f.options.Validate(); err != nil {
		return withCode(exitInput, err)
	}
	if f.unclassified && f.out == "" {
		s, err := r(files, f.options, func([]datasets.Span) error { return nil })
		if err != nil {
			return withCode(exitInput, err)
		}
		return s.Stubs(out)
	}
	if filepath.Ext(f.out) != "."+datasets.Parquet {
		return withCode(exitInput, fmt.Errorf("--out %q: name a .parquet file for the timeline", f.out))
	}
	w, err := datasets.Create[datasets.Span](f.out, nil)
	if err != nil {
		return withCode(exitInput, err)
	}
	s, err := r(files, f.options, w.Write)
	if err != nil {
		w.Abort()
		return withCode(exitInput, err)
	}
	if err := describe(w, s); err != nil {
		w.Abort()
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	if f.unclassified {
		return s.Stubs(out)
	}
	return printImport(out, f.out, s)
}

// readRules reads the user's rules.
func (f *importFlags) readRules() error {
	if f.rules == "" {
		return nil
	}
	file, err := os.Open(f.rules)
	if err != nil {
		return fmt.Errorf("reading rules: %w", err)
	}
	defer file.Close()
	f.options.Rules, err = importer.ReadRules(file, f.rules)
	return err
}

// printRefusal writes what was found in a trace before it was refused.
func printRefusal(w io.Writer, err error) {
	var r *importer.Refusal
	if !errors.As(err, &r) {
		return
	}
	var b strings.Builder
	writeFindings(&b, r.Findings)
	io.WriteString(w, datasets.Shown(b.String()))
}

func writeFindings(b *strings.Builder, list []datasets.Finding) {
	for _, f := range list {
		who := ""
		if f.Rank >= 0 {
			who = fmt.Sprintf("rank %d: ", f.Rank)
		}
		report.Wrap(b, f.Severity+": "+who+f.Text, 100)
	}
}

// describe stores the findings with the timeline.
func describe(w *datasets.Writer[datasets.Span], s *importer.Summary) error {
	findings, err := json.Marshal(s.Findings)
	if err != nil {
		return fmt.Errorf("encoding the findings: %w", err)
	}
	if err := w.Describe(datasets.FindingsKey, string(findings)); err != nil {
		return err
	}
	periods, err := json.Marshal(s.Periods)
	if err != nil {
		return fmt.Errorf("encoding the periods of steps: %w", err)
	}
	if err := w.Describe(datasets.PeriodsKey, string(periods)); err != nil {
		return err
	}
	if s.Device != "" {
		if err := w.Describe(datasets.DeviceKey, s.Device); err != nil {
			return err
		}
	}
	return w.Describe("glmbatch.epoch_ns", fmt.Sprint(s.EpochNS))
}

func printImport(out io.Writer, path string, s *importer.Summary) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s, %s, %s\n\n", path, several(s.Rows, "row"), several(int64(s.Steps), "step"),
		several(int64(len(s.Ranks)), "rank"))
	fmt.Fprintf(&b, "%4s %9s %8s %8s %9s %17s %17s %17s\n", "rank", "kernels", "memcpy", "memset", "calls",
		"kernels ns", "GPU busy ns", "GPU span ns")
	for _, r := range s.Ranks {
		fmt.Fprintf(&b, "%4d %9d %8d %8d %9d %17s %17s %17s\n", r.Rank, r.Kernels, r.Memcpy, r.Memset, r.Calls,
			units.Digits(r.KernelNS), units.Digits(r.UnionNS), units.Digits(r.SpanNS))
	}
	if len(s.Ranks) > 1 {
		fmt.Fprintf(&b, "%4s %9s %8s %8s %9s %17s %17s %17s\n", "all", "", "", "", "", "", units.Digits(s.UnionNS),
			units.Digits(s.SpanNS))
	}
	fmt.Fprintf(&b, "\n%-16s %9s %17s\n", "class", "rows", "sum of times ns")
	for _, c := range s.Classes {
		fmt.Fprintf(&b, "%-16s %9d %17s\n", c.Class, c.Rows, units.Digits(c.NS))
	}
	fmt.Fprintf(&b, "\n%.2f %% of the kernels' time has a class.\n", 100*s.Covered())
	writeFindings(&b, s.Findings)
	fmt.Fprintf(&b, "\nnext: %s report %s\n", callName(), path)
	_, err := io.WriteString(out, datasets.Shown(b.String()))
	return err
}

// several is a number of things.
func several(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return units.Digits(n) + " " + thing + "s"
}

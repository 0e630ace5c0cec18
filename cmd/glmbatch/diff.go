package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"glmbatch/replay/report"
)

func newDiffCommand() *cobra.Command {
	var format, kind string
	c := &cobra.Command{
		Use:   "diff A B",
		Short: "Compare what the steps of two timelines cost, kernel by kernel",
		Long: `diff compares two timelines: output folders of runs, timeline files of glmbatch
import or captured steps, in any mix. Classes and gaps are compared first, and add up
to the change of the wall time; then kernels, matched by name, grid and class, and
what is left by class and calls a step: a new version of a library renames its
kernels. Times are per step. A change counts only when the 95 % bootstrap intervals
of the two medians do not overlap and each side has at least three steps; otherwise
the verdict is "cannot tell". Folders of jobs are compared in tokens per second too,
and in that alone where one of them recorded no timeline.`,
		Example: `  glmbatch diff before after
  glmbatch diff out/captures/step-00000042.arrow out --kind decode
  glmbatch diff other-engine.parquet out --kind decode --format markdown`,
		Args: exactArgs(2, "two timelines"),
		RunE: func(c *cobra.Command, args []string) error {
			return withCode(exitInput, runDiff(args[0], args[1], kind, format, c.OutOrStdout()))
		},
	}
	c.Flags().StringVar(&format, "format", report.DiffFormats[0], strings.Join(report.DiffFormats, ", "))
	c.Flags().StringVar(&kind, "kind", "", "only prefill, decode, mixed or step (unknown) steps")
	return c
}

func runDiff(pathA, pathB, kind, format string, stdout io.Writer) error {
	steps, err := diffSteps(pathA, pathB, kind)
	if err != nil {
		return err
	}
	if steps != nil && (!hasTimeline(pathA) || !hasTimeline(pathB)) {
		return steps.Write(stdout, format, styleOf(stdout))
	}
	var sides [2]*report.Report
	for i, path := range []string{pathA, pathB} {
		s, err := timelineOf(path)
		if err != nil {
			return err
		}
		if sides[i], err = s.Report(report.DiffOptions(kind)); err != nil {
			return err
		}
	}
	d, err := report.Compare(sides[0], sides[1])
	if err != nil {
		return err
	}
	if steps != nil {
		d.Throughput = steps.Kinds
	}
	if err := d.Write(stdout, format, styleOf(stdout)); err != nil || steps == nil || format == "json" {
		return err
	}
	fmt.Fprintln(stdout)
	return steps.Write(stdout, format, styleOf(stdout))
}

// diffSteps compares the steps of two jobs; nil: one of the two is no job's folder.
func diffSteps(pathA, pathB, kind string) (*report.ThroughputDiff, error) {
	a, err := report.ReadSteps(pathA, kind, nil)
	if a == nil {
		return nil, err
	}
	b, err := report.ReadSteps(pathB, kind, nil)
	if b == nil {
		return nil, err
	}
	return report.CompareSteps(a, b), nil
}

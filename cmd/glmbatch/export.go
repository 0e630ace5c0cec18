package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"glmbatch/replay/report"
	"glmbatch/replay/timeline"
	"glmbatch/units"
)

func newExportCommand() *cobra.Command {
	var out, steps string
	var names, help []string
	for _, v := range report.Viewers {
		names = append(names, v.Name)
		help = append(help, fmt.Sprintf("  %-9s %s", v.Name, v.Help))
	}
	c := &cobra.Command{
		Use:   "export " + strings.Join(names, "|") + " OUT|TIMELINE|CAPTURE --out FILE",
		Short: "Write steps of a timeline for a trace viewer",
		Long: `export writes the timeline of a run's output folder, a timeline file, or a captured step
as it was recorded, for a viewer:
` + strings.Join(help, "\n") + `

Times are exact to the nanosecond, relative to the first span. A process is a rank, a thread a
lane. Spans of one lane that cross each other (programmatic launch) go to further lanes named
"(overlap 1)" and so on, as viewers drop what does not nest. A FILE ending in .gz is compressed.`,
		Example: `  glmbatch export perfetto out --out steps.pftrace --steps 10..19
  glmbatch export chrome out --out steps.json.gz`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 2 || !slices.Contains(names, args[0]) {
				return withCode(exitInput,
					fmt.Errorf("%s needs %s and then an output folder or a timeline file (see '%s --help')",
						c.CommandPath(), strings.Join(names, " or "), c.CommandPath()))
			}
			if out == "" {
				return withCode(exitInput, fmt.Errorf("%s needs --out FILE", c.CommandPath()))
			}
			return nil
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return names, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveDefault
		},
		RunE: func(c *cobra.Command, args []string) error {
			return withCode(exitInput, runExport(args[1], out, args[0], steps, c.OutOrStdout()))
		},
	}
	c.Flags().StringVarP(&out, "out", "o", "", "`FILE` to write")
	c.Flags().StringVar(&steps, "steps", "", "only step `A`, or steps A..B")
	return c
}

func runExport(path, out, viewer, steps string, stdout io.Writer) error {
	r, err := stepRange(steps)
	if err != nil {
		return err
	}
	s, err := timelineOf(path)
	if err != nil {
		return err
	}
	n, left, err := s.Export(out, viewer, r)
	if err != nil {
		return err
	}
	if left > 0 {
		if _, err := fmt.Fprintf(stdout,
			"%s spans left out: they end before they start, or lie decades from the others\n",
			units.Digits(int64(left))); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(stdout, "%s spans written to %s: open it at ui.perfetto.dev\n",
		units.Digits(int64(n)), oneLine(out))
	return err
}

// stepRange reads "a", "a..b", "a.." or "" for all.
func stepRange(s string) (timeline.Steps, error) {
	if s == "" {
		return timeline.AllSteps, nil
	}
	from, to, isRange := strings.Cut(s, "..")
	bad := fmt.Errorf("--steps takes a step or a range a..b, not %q", s)
	a, err := strconv.ParseInt(from, 10, 64)
	if err != nil || a < 0 {
		return timeline.Steps{}, bad
	}
	b := a
	if isRange {
		b = math.MaxInt64
		if to != "" {
			if b, err = strconv.ParseInt(to, 10, 64); err != nil || b < a {
				return timeline.Steps{}, bad
			}
		}
	}
	return timeline.Steps{From: a, To: b}, nil
}

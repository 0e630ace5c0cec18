package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"glmbatch/datasets"
	"glmbatch/pipeline"
	"glmbatch/units"
)

func newCompareCommand() *cobra.Command {
	var o pipeline.CompareOptions
	var format string
	var equal bool
	c := &cobra.Command{
		Use:   "compare A B",
		Short: "Compare the output rows of two jobs: how many are equal, and where they differ first",
		Long: `compare reads the outputs of two jobs on the same input: their folders, or files of
outputs/. Rows with the same row_index and sample_index are compared in response,
reasoning, finish_reason and error_code, and counted by finish_reason and by the
values of a column. With --check it says how many are right on each side.
`,
		Example: `  glmbatch compare bf16 fp8
  glmbatch compare before after --by task --check expected
  glmbatch compare out again --equal --format json`,
		Args: exactArgs(2, "two output folders"),
		RunE: func(c *cobra.Command, args []string) error {
			return runCompare(c.OutOrStdout(), c.ErrOrStderr(), args, o, format, equal)
		},
	}
	f := c.Flags()
	f.StringVar(&o.By, "by", "", "column whose values rows are counted by (default: task, if there is one)")
	f.StringVar(&o.Check, "check", "", "column of right answers (text, numbers, true or false, dates)")
	f.StringVar(&format, "format", "text", "text or json")
	f.BoolVar(&equal, "equal", false, "end with exit code 6 unless all rows are equal")
	return c
}

func runCompare(w, stderr io.Writer, args []string, o pipeline.CompareOptions, format string, equal bool) error {
	if err := oneOf("format", format, "text", "json"); err != nil {
		return err
	}
	var sides [2]*datasets.Input
	for i, path := range args {
		in, err := openOutputs(path)
		if err != nil {
			return withCode(exitInput, err)
		}
		defer in.Close()
		sides[i] = in
	}
	other := pipeline.OtherInput(args[0], args[1])
	if other != "" {
		newSpeaker(stderr).line("note: the jobs had other inputs, so rows of one number may be of other prompts: %s",
			oneLine(other))
	}
	if f, ok := sides[0].Lookup("task"); ok && o.By == "" && f.Shape == datasets.Text {
		o.By = "task"
	}
	c, err := pipeline.Compare(sides[0], sides[1], o)
	if err != nil {
		return withCode(exitInput, err)
	}
	c.OtherInput = other
	if format == "json" {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		err = e.Encode(c)
	} else {
		err = printComparison(w, c, o)
	}
	if err == nil && equal && !c.Equal() {
		err = withCode(exitCheck, fmt.Errorf("%s and %s differ: %s of %s rows are equal", args[0], args[1],
			units.Digits(c.All.Equal), units.Digits(c.All.Rows+c.OnlyA+c.OnlyB)))
	}
	return err
}

// openOutputs opens the outputs of a job's folder, of its shards, or files that are
// named.
func openOutputs(path string) (*datasets.Input, error) {
	args := []string{path}
	if dir := filepath.Join(path, datasets.OutputsDir); isFolder(dir) {
		args[0] = dir
	} else if shards, err := datasets.Shards(path); err == nil && len(shards) > 0 {
		args = nil
		for _, s := range shards {
			args = append(args, filepath.Join(path, s.Dir(), datasets.OutputsDir))
		}
	}
	paths, err := datasets.Expand(args)
	if err != nil {
		return nil, err
	}
	return datasets.Open(paths)
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func printComparison(w io.Writer, c *pipeline.Comparison, o pipeline.CompareOptions) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(name string, n pipeline.Compared) {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s", oneLine(name), units.Digits(n.Rows), units.Digits(n.Equal),
			share(n.Equal, n.Rows))
		if o.Check != "" {
			fmt.Fprintf(t, "\t%s\t%s", share(n.RightA, n.Check), share(n.RightB, n.Check))
		}
		fmt.Fprintln(t)
	}
	head := "\trows\tequal\t"
	if o.Check != "" {
		head += "\tright in A\tright in B"
	}
	fmt.Fprintln(t, head)
	line("all", c.All)
	for _, part := range []struct {
		title string
		rows  map[string]pipeline.Compared
	}{{"finish_reason", c.Reasons}, {o.By, c.Groups}} {
		for _, name := range slices.Sorted(maps.Keys(part.rows)) {
			line(part.title+" "+name, part.rows[name])
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if c.OnlyA+c.OnlyB > 0 {
		fmt.Fprintf(w, "%s rows are only in A, %s only in B\n", units.Digits(c.OnlyA), units.Digits(c.OnlyB))
	}
	if d := c.First; d != nil {
		fmt.Fprintf(w, "the first difference is in row %d, sample %d, in %s from byte %d on:\n  A  %q\n  B  %q\n",
			d.Row, d.Sample, d.Column, d.At, d.A, d.B)
	}
	verdict := "the jobs are equal"
	if !c.Equal() {
		verdict = "the jobs differ"
	}
	_, err := fmt.Fprintf(w, "%s: %s of %s rows are equal\n", verdict, units.Digits(c.All.Equal),
		units.Digits(c.All.Rows+c.OnlyA+c.OnlyB))
	return err
}

// share is a part in percent.
func share(part, whole int64) string {
	if whole == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(whole))
}

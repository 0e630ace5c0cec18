package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"glmbatch/pipeline"
	"glmbatch/units"
)

func newStatusCommand() *cobra.Command {
	var format string
	var steps int
	c := &cobra.Command{
		Use:   "status OUT",
		Short: "Say how far a job is, also while it runs",
		Long: `status reads the output folder of a job, or of its shards, and says how many rows are
done and saved, tokens a second over the last steps, the time left, errors by code and
the last steps. It disturbs no run, and works from any machine that sees the folder.

States: running, interrupted, failed, complete; killed: its process is gone without a
word; silent: its process is on another machine and has said nothing for a minute;
missing: a shard that has not begun; then nobody knows of how many rows (input_rows is
null), nor the time left (seconds_left).
`,
		Example: `  glmbatch status out
  watch glmbatch status out
  glmbatch status out --format json | jq .seconds_left`,
		Args: exactArgs(1, "an output folder"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := oneOf("format", format, "text", "json"); err != nil {
				return withCode(exitInput, err)
			}
			if err := inRange("steps", steps, 0, 512); err != nil {
				return withCode(exitInput, err)
			}
			s, err := pipeline.ReadStatus(args[0], time.Now())
			if err != nil {
				return withCode(exitInput, err)
			}
			if format == "json" {
				s.Steps = s.Steps[max(0, len(s.Steps)-steps):]
				for i := range s.Shards {
					one := &s.Shards[i]
					one.Steps = one.Steps[max(0, len(one.Steps)-steps):]
				}
				e := json.NewEncoder(c.OutOrStdout())
				e.SetIndent("", "  ")
				return e.Encode(s)
			}
			return printStatus(c.OutOrStdout(), s, steps, time.Now())
		},
	}
	c.Flags().StringVar(&format, "format", "text", "text or json")
	c.Flags().IntVar(&steps, "steps", 5, "how many of the last steps to show")
	return c
}

// printStatus ends with the line that says it all.
func printStatus(w io.Writer, s *pipeline.Status, steps int, now time.Time) error {
	var failed error
	p := func(format string, a ...any) {
		if _, err := fmt.Fprintf(w, format+"\n", a...); failed == nil {
			failed = err
		}
	}
	c := &s.Counts
	run := ""
	if s.RunID != "" {
		run = ", run " + s.RunID
	}
	p("%-8s %s%s, %s", "job", s.Dir, run, stateText(s))
	p("%-8s %s", "rows", rowsText(s))
	for _, code := range slices.Sorted(maps.Keys(c.Codes)) {
		p("  %-12s %s", code, units.Digits(c.Codes[code]))
	}
	p("%-8s %s prompt, %s completion", "tokens", units.Digits(c.PromptTokens), units.Digits(c.CompletionTokens))
	if n := s.Engine.Shared; n > 0 {
		p("%-8s %s prompt tokens that rows share were computed once", "", units.Digits(n))
	}
	if c.Checked > 0 {
		p("%-8s %s of %s answers are right", "checked", units.Digits(c.Correct), units.Digits(c.Checked))
	}
	if s.Runs > 0 {
		p("%-8s %s steps, %s preemptions, %d runs since %s, last word %s ago", "engine", units.Digits(s.Engine.Steps),
			units.Digits(s.Engine.Preemptions), s.Runs,
			s.Started.Format(time.RFC3339), now.Sub(s.Updated).Round(time.Second))
	}
	for _, shard := range s.Shards {
		if shard.State == pipeline.StatusMissing {
			p("%-8s %-7s %s", "shard", shard.Shard, shard.State)
			continue
		}
		p("%-8s %-7s %s, %s", "shard", shard.Shard, stateText(&shard), rowsText(&shard))
	}
	if last := s.Steps[max(0, len(s.Steps)-steps):]; len(last) > 0 {
		p("%-8s %8s %-8s %9s %8s %10s", "", "step", "kind", "sequences", "tokens", "ms")
		for _, x := range last {
			p("%-8s %8d %-8s %9d %8d %10.2f", "", x.Step, x.Kind, x.Sequences, x.Tokens, float64(x.WallNS)/1e6)
		}
	}
	p("%s", finding(s))
	return failed
}

func stateText(s *pipeline.Status) string {
	text := s.State
	if s.Holder != "" {
		text += " (" + s.Holder + ")"
	}
	if s.Error != "" && s.Error != s.State && s.State != pipeline.StatusComplete {
		text += ": " + oneLine(s.Error)
	}
	return text
}

func rowsText(s *pipeline.Status) string {
	c := &s.Counts
	text := outOf(s, " saved")
	if c.Errors > 0 {
		text += fmt.Sprintf(", %s with errors", units.Digits(c.Errors))
	}
	return text
}

// outOf says how many rows, of how many: nobody knows that before all shards have begun.
func outOf(s *pipeline.Status, noun string) string {
	c := &s.Counts
	if c.InputRows == nil {
		return fmt.Sprintf("%s%s, by %d of %d shards", units.Digits(c.Rows), noun, s.Begun(), len(s.Shards))
	}
	return fmt.Sprintf("%s of %s%s%s", units.Digits(c.Rows), units.Digits(*c.InputRows), noun, percent(c))
}

func percent(c *pipeline.StatusCounts) string {
	if *c.InputRows == 0 {
		return ""
	}
	return fmt.Sprintf(" (%.1f %%)", 100*float64(c.Rows)/float64(*c.InputRows))
}

// finding is what a person wants to know of a job, in a line.
func finding(s *pipeline.Status) string {
	c := &s.Counts
	done := outOf(s, " rows")
	switch {
	case s.State == pipeline.StatusComplete && len(s.Shards) > 0:
		return fmt.Sprintf("all %d shards are complete: %s merge %s", len(s.Shards), callName(), s.Dir)
	case s.State == pipeline.StatusComplete:
		return fmt.Sprintf("complete: %s, %s with errors", done, units.Digits(c.Errors))
	case s.State == pipeline.StatusRunning && s.Left != nil && *s.Left > 0:
		return fmt.Sprintf("running: %s, %s tokens/s, about %s left", done, units.Digits(int64(s.Rate)),
			(time.Duration(*s.Left)*time.Second + time.Second).String())
	case s.State == pipeline.StatusRunning:
		return "running: " + done
	case len(s.Shards) > 0:
		return fmt.Sprintf("%s: %s; run the shards that are not complete again", s.State, done)
	}
	return fmt.Sprintf("%s: %s are saved; the same command goes on from there", s.State, done)
}

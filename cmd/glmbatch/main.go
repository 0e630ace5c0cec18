// Command glmbatch runs prompts from Parquet files through GLM-5 on one machine
// and says what every kernel of a step costs.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

func main() {
	log.SetOutput(io.Discard) // libraries' own lines: what matters comes back as an error
	ctx, stop := signalContext(os.Stderr)
	defer stop()
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if endingOf(ctx).over.Load() {
		select {} // until the process ends, with the code of one that was interrupted
	}
	os.Exit(code)
}

// run is main without the process: it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	ctx, end := withEnding(ctx)
	root := newRootCommand()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err != nil && !end.over.Load() {
		end.speaker(stderr).fail(err.Error(), codeOf(err))
	}
	return codeOf(err)
}

// oneLine escapes what an error has from a file and is not to be printed.
func oneLine(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == '\n':
			b.WriteString("; ")
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case !unicode.IsGraphic(r):
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		default:
			b.WriteRune(r)
		}
		s = s[n:]
	}
	return b.String()
}

// plainFlag is what is wrong with a flag's value, without the function that found it.
func plainFlag(err error) string {
	s := err.Error()
	var n *strconv.NumError
	if !errors.As(err, &n) {
		return s
	}
	why := "it is not a number"
	switch {
	case errors.Is(n, strconv.ErrRange):
		why = "it is too large"
	case n.Func == "ParseBool":
		why = "it is not true or false"
	case n.Func != "ParseFloat":
		why = "it is not a whole number"
	}
	return strings.Replace(s, n.Error(), why, 1)
}

// newRootCommand returns the whole program: one file a command.
func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "glmbatch",
		Short: "Batch inference for GLM-5 on one machine, with a timeline of every kernel",
		Long: "glmbatch reads prompts from Parquet, runs them through a tensor-parallel engine for\nGLM-5 with " +
			"NVFP4 weights, and writes outputs and per-step kernel timelines.\n" + exitHelp,
		Example: `  glmbatch run --demo --out out      # a whole job, on the model that is in this program
  glmbatch report out                # what its steps cost
  glmbatch doctor --config glm-5     # would the full model fit here?`,
		Args:          noCommand,
		RunE:          showHelp,
		Version:       versionText(),
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(c *cobra.Command, args []string) error {
			return withCode(exitInput, givenEmpty(c.Flags()))
		},
	}
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	root.SetUsageFunc(printUsage)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return withCode(exitInput, fmt.Errorf("%s%s (see '%s --help')", plainFlag(err), likelyFlag(c, err),
			c.CommandPath()))
	})
	root.AddCommand(
		newImportCommand(),
		newModelCommand(),
		newReplayCommand(),
		newReportCommand(),
		newRecordCommand(),
		newDiffCommand(),
		newCompareCommand(),
		newExportCommand(),
		newRunCommand(),
		newMergeCommand(),
		newStatusCommand(),
		newBenchCommand(),
		newDoctorCommand(),
		newManCommand(),
	)
	complete(root)
	return root
}

// noCommand refuses the arguments of a command that only has others below it:
// they are names of commands that do not exist.
func noCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	near := ""
	c.SuggestionsMinimumDistance = 2 // letters that may differ
	if names := c.SuggestionsFor(args[0]); len(names) > 0 {
		near = fmt.Sprintf(", did you mean %s?", names[0])
	}
	return withCode(exitInput, fmt.Errorf("%s has no command %q%s (see '%s --help')", c.CommandPath(), args[0], near,
		c.CommandPath()))
}

func showHelp(c *cobra.Command, args []string) error { return c.Help() }

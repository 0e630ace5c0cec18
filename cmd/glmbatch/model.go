package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"glmbatch/datasets/demo"
	"glmbatch/engine/checkpoint"
	"glmbatch/engine/glm5"
)

// newModelCommand is the parent of what is done to checkpoints.
func newModelCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "model",
		Short: "Look at checkpoints, make them, check them",
		Long: `Checkpoints are folders as the Hugging Face hub has them: config.json and
safetensors, in one file or in shards with an index. Where there is no folder demo,
that is the name of the checkpoint in this program.`,
		Args: noCommand,
		RunE: showHelp,
	}
	c.AddCommand(newModelInspectCommand(), newModelSynthCommand(), newModelQuantizeCommand(), newModelVerifyCommand(),
		newModelTokenizeCommand())
	return c
}

// openModel opens a folder, or the demo checkpoint by its name, and reads its
// config. What is wrong with them is input that cannot be used.
func openModel(dir string) (*checkpoint.Checkpoint, glm5.Config, error) {
	ck, err := openCheckpoint(dir)
	if err != nil {
		return nil, glm5.Config{}, withCode(exitInput, err)
	}
	c, err := glm5.ParseConfig(ck.Config())
	if err != nil {
		return nil, c, withCode(exitInput, errors.Join(fmt.Errorf("reading %s: %w", dir, err), ck.Close()))
	}
	c.Untie(ck)
	return ck, c, nil
}

// openCheckpoint opens a folder, a model of the hub that is in the local cache, or the
// demo checkpoint by its name.
func openCheckpoint(dir string) (*checkpoint.Checkpoint, error) {
	if isDemo(dir) {
		return checkpoint.FromFiles(demo.Files())
	}
	at, err := hubFolder(dir)
	if err != nil {
		return nil, err
	}
	return checkpoint.Open(at, glm5.Accept)
}

// isDemo reports whether dir names the demo checkpoint: there is no such folder.
func isDemo(dir string) bool {
	_, err := os.Stat(dir)
	return dir == demoName && errors.Is(err, fs.ErrNotExist)
}

// unwritten says why a checkpoint was not written; nothing of it is left.
func unwritten(out string, err error) error {
	if errors.Is(err, context.Canceled) {
		return withCode(exitInterrupted, fmt.Errorf("interrupted: %s is not written", out))
	}
	return fmt.Errorf("writing %s: %w", out, err)
}

// exactArgs refuses other counts of arguments, as usage.
func exactArgs(n int, names string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != n {
			return withCode(exitInput, fmt.Errorf("%s takes %s, not %d (see '%s --help')", c.CommandPath(), names,
				len(args), c.CommandPath()))
		}
		return nil
	}
}

// oneOf refuses a flag's value that is not among choices.
func oneOf(flag, value string, choices ...string) error {
	if slices.Contains(choices, value) {
		return nil
	}
	return withCode(exitInput, fmt.Errorf("--%s %q: it must be %s", flag, value, strings.Join(choices, " or ")))
}

// checkTP refuses counts of ranks that no model is cut for. What a model's own
// shapes allow is glm5.Config.CheckTP's.
func checkTP(n int) error {
	if slices.Contains(glm5.Shards, n) {
		return nil
	}
	return withCode(exitInput, fmt.Errorf("--tp %d: it must be 1, 2, 4 or 8", n))
}

// inRange refuses a flag's value outside of low to high.
func inRange[T int | int64 | time.Duration](flag string, value, low, high T) error {
	if value < low || value > high {
		return withCode(exitInput, fmt.Errorf("--%s %v: it must be from %v to %v", flag, value, low, high))
	}
	return nil
}

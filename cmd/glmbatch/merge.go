package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"glmbatch/datasets"
	"glmbatch/pipeline"
	"glmbatch/stores"
	"glmbatch/units"
)

func newMergeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "merge OUT",
		Short: "Make one job of the shards of an output folder, once all are complete",
		Long: `merge takes the folder that runs with --shard wrote to, OUT/shards/00000-of-00008 and
so on. It proves that all shards are there, complete, of one job, and that their rows
are the input's: each row with all its samples, exactly once, in order. Then it puts
their files into OUT/outputs, sums their counts into OUT/_manifest.json and writes
OUT/_SUCCESS. Steps, timelines and captures stay with their shards: report OUT reads
them all.

If shards are missing or not complete it changes nothing and says which to run.
`,
		Example: `  # on each of four machines, with i from 0 to 3
  glmbatch run prompts.parquet --model models/GLM-5-NVFP4 --out job --shard i/4
  # once, anywhere
  glmbatch merge job`,
		Args: exactArgs(1, "an output folder"),
		RunE: func(c *cobra.Command, args []string) error {
			return runMerge(c.Context(), args[0], c.OutOrStdout())
		},
	}
}

func runMerge(ctx context.Context, out string, w io.Writer) error {
	m, err := merge(ctx, out)
	switch {
	case errors.Is(err, pipeline.ErrLocked):
		return withCode(exitLocked, err)
	case errors.Is(err, pipeline.ErrShards):
		return withCode(exitCheck, err)
	case errors.Is(err, pipeline.ErrFolder):
		return withCode(exitInput, err)
	case errors.Is(err, pipeline.ErrOutput):
		return withCode(exitOutput, err)
	case err != nil:
		return err
	}
	what := "merged"
	if m.Already {
		what = "had been merged already"
	}
	_, err = fmt.Fprintf(w, "%s shards %s: %s input rows, %s output rows, %s with errors, in %s files of %s\n",
		units.Digits(int64(m.Shards)), what,
		units.Digits(m.Counts.InputRows), units.Digits(m.Counts.Samples), units.Digits(m.Counts.Errors),
		units.Digits(int64(m.Parts)), out)
	return err
}

// merge also merges shards in an object store: in a copy here, which is then uploaded.
func merge(ctx context.Context, out string) (*pipeline.Merged, error) {
	arguments := append([]string{}, os.Args[1:]...)
	if !stores.IsURL(out) {
		return pipeline.Merge(out, arguments)
	}
	temp, err := datasets.NewTemporary()
	if err != nil {
		return nil, err
	}
	defer temp.Remove()
	dir := filepath.Join(temp.Dir, "job")
	mirror := stores.Mirror{Dir: dir, URL: out, Last: []string{datasets.ManifestFile, datasets.SuccessFile}}
	if err := mirror.Pull(ctx); err != nil {
		return nil, err
	}
	m, err := pipeline.Merge(dir, arguments)
	if err != nil {
		return nil, err
	}
	return m, mirror.Finish(ctx)
}

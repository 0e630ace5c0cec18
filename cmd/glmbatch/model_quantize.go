package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"glmbatch/engine/checkpoint"
	"glmbatch/engine/quantize"
	"glmbatch/kernels/nvfp4"
	"glmbatch/units"
)

type quantizeOptions struct {
	Out       string
	Include   []string
	InputAmax float64
	ShardSize string
}

func newModelQuantizeCommand() *cobra.Command {
	var o quantizeOptions
	c := &cobra.Command{
		Use:   "quantize DIR --out DIR",
		Short: "Write the NVFP4 form of a BF16 or FP8 checkpoint",
		Long: `quantize writes the routed experts of the main layers as NVFP4 in ModelOpt's form,
as NVIDIA's releases have them, and copies everything else byte for byte: other
weights, tokenizer, chat template, generation settings. FP8 weights that stay are
written as BF16.

Scales and rounding are ModelOpt's: a global scale of amax/2688, shared by gate
and up of an expert; a block scale of amax/(6 global), from 2^-9 to 448, rounded to
E4M3; values rounded to the nearest, ties to even. There is no calibration, so
input scales, which 4-bit activations need, are written only with --input-amax.

Memory stays small for any size. The folder appears under its name when it is
complete.`,
		Example: `  glmbatch model quantize models/GLM-5 --out models/GLM-5-NVFP4
  # shared experts and the prediction layer's experts too
  glmbatch model quantize models/GLM-5 --out models/more --include '*shared_experts*' \
      --include 'model.layers.78.mlp.experts.*'
  # with input scales for activations up to 12
  glmbatch model quantize models/GLM-5 --out models/w4a4 --input-amax 12`,
		Args: exactArgs(1, "one folder"),
		RunE: func(c *cobra.Command, args []string) error {
			return runModelQuantize(c.Context(), c.OutOrStdout(), args[0], o)
		},
	}
	f := c.Flags()
	f.StringVarP(&o.Out, "out", "o", "", "folder to write; it must not exist, or be empty")
	f.StringArrayVar(&o.Include, "include", nil, "pattern of more modules to quantise, with * and ?; may be repeated")
	f.Float64Var(&o.InputAmax, "input-amax", 0, "largest activation, for input scales (default: none are written)")
	f.StringVar(&o.ShardSize, "shard-size", "5GB", "largest weight file: 500MB, 5GB, 2GiB")
	return c
}

func runModelQuantize(ctx context.Context, stdout io.Writer, dir string, o quantizeOptions) error {
	shardSize, err := units.ParseBytes(o.ShardSize)
	if err != nil {
		return withCode(exitInput, fmt.Errorf("--shard-size: %w", err))
	}
	if o.Out == "" {
		return withCode(exitInput, errors.New("--out is missing: give the folder to write"))
	}
	if !(o.InputAmax >= 0 && o.InputAmax < 1e30) {
		return withCode(exitInput, fmt.Errorf("--input-amax %g: it must be above 0", o.InputAmax))
	}
	ck, c, err := openModel(dir)
	if err != nil {
		return err
	}
	defer ck.Close()
	input := float32(o.InputAmax / (nvfp4.MaxE2M1 * nvfp4.MaxE4M3))
	q, err := quantize.New(ck, &c, o.Include, input)
	if err != nil {
		return withCode(exitInput, fmt.Errorf("quantising %s: %w", dir, err))
	}
	w, err := checkpoint.NewWriter(o.Out, q.Entries, shardSize)
	if err != nil {
		return withCode(exitInput, fmt.Errorf("writing a checkpoint: %w", err))
	}
	defer w.Abort()
	start := time.Now()
	if _, err := checkpoint.CopySide(w, dir, nil); err != nil {
		return err
	}
	if err := q.Write(ctx, w); err != nil {
		return unwritten(o.Out, err)
	}
	if err := q.WriteConfig(w); err != nil {
		return err
	}
	if err := w.Commit(); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(stdout, "%s of %s weights are NVFP4: %s became %s\n", units.Digits(int64(q.Count)),
		units.Digits(int64(q.Total)), units.Bytes(ck.Bytes()), units.Bytes(q.Bytes)); err != nil {
		return err
	}
	return reportWritten(stdout, o.Out, q.Params, q.Bytes, time.Since(start))
}

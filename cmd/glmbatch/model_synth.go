package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"glmbatch/engine/checkpoint"
	"glmbatch/engine/synth"
	"glmbatch/units"
)

type synthFlags struct {
	synth.Options
	Out       string
	Seed      uint64
	ShardSize string
	Weights   string
	Tokenizer string
}

func newModelSynthCommand() *cobra.Command {
	var o synthFlags
	c := &cobra.Command{
		Use:   "synth --config FILE|glm-5|glm-5.2|tiny --out DIR",
		Short: "Write a checkpoint of random weights, of any size",
		Long: `synth writes a checkpoint with GLM-5's architecture and random weights, for tests
of speed and of memory. Routed experts are NVFP4 in ModelOpt's form, the rest is
BF16, as in NVIDIA's releases; --weights has other forms. Weights are scaled so that
activations stay finite through all layers. The same options and seed give the same
bytes for any shard size.

The config is a built-in one, a config.json or a folder that has one; options
change it, in the order --scale, --layers and the other sizes, --set. The folder
appears under its name when it is complete.`,
		Example: `  glmbatch model synth --config tiny --out models/random
  # hidden 1536, 16 layers, 64 experts top-8: about 1 B parameters
  glmbatch model synth --config glm-5 --layers 16 --hidden 1536 --experts 64 --heads 16 --vocab 32768 \
      --set moe_intermediate_size=128 --set intermediate_size=4096 --set q_lora_rank=768 --out models/1b
  # four full-size layers of GLM-5.2, in files of 2 GB
  glmbatch model synth --config glm-5.2 --layers 4 --shard-size 2GB --out models/glm52-4
  # everything at a quarter of its width, with a real tokenizer
  glmbatch model synth --config glm-5 --scale 0.25 --tokenizer models/GLM-5 --set vocab_size=154880 --out models/q`,
		Args: exactArgs(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			return runModelSynth(c.Context(), c.OutOrStdout(), o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.Config, "config", "", "glm-5, glm-5.2, tiny, or a config.json or its folder")
	f.StringVarP(&o.Out, "out", "o", "", "folder to write; it must not exist, or be empty")
	f.Float64Var(&o.Scale, "scale", 1, "factor for all widths, ranks, head counts and the vocabulary")
	f.IntVar(&o.Layers, "layers", 0, "number of layers")
	f.IntVar(&o.Hidden, "hidden", 0, "hidden size")
	f.IntVar(&o.Experts, "experts", 0, "routed experts of a layer")
	f.IntVar(&o.TopK, "top-k", 0, "experts a token")
	f.IntVar(&o.Heads, "heads", 0, "attention heads")
	f.IntVar(&o.Vocab, "vocab", 0, "vocabulary size")
	f.StringArrayVar(&o.Set, "set", nil, "key=value for any field of config.json; may be repeated")
	f.Uint64Var(&o.Seed, "seed", 0, "of the random weights")
	f.StringVar(&o.ShardSize, "shard-size", "5GB", "largest weight file: 500MB, 5GB, 2GiB")
	f.StringVar(&o.Weights, "weights", "nvfp4",
		"nvfp4: the routed experts; fp8: the layers' Linears, as GLM-5-FP8 has\nthem; bf16: all")
	f.BoolVar(&o.MTP, "mtp", true, "write the prediction layer, if the config has one")
	f.StringVar(&o.Tokenizer, "tokenizer", "", "folder to copy tokenizer, chat template and generation settings from")
	return c
}

// tokenizerFiles are what --tokenizer copies.
var tokenizerFiles = []string{"tokenizer.json", "tokenizer_config.json", "chat_template.jinja",
	"generation_config.json", "special_tokens_map.json"}

func runModelSynth(ctx context.Context, stdout io.Writer, o synthFlags) error {
	if o.Scale == 0 {
		return withCode(exitInput, errors.New("--scale 0: it must be above 0 and at most 64"))
	}
	m, c, err := o.Resolve()
	if err != nil {
		return withCode(exitInput, err)
	}
	shardSize, err := units.ParseBytes(o.ShardSize)
	if err != nil {
		return withCode(exitInput, fmt.Errorf("--shard-size: %w", err))
	}
	if err := oneOf("weights", o.Weights, "nvfp4", "fp8", "bf16"); err != nil {
		return err
	}
	if o.Out == "" {
		return withCode(exitInput, errors.New("--out is missing: give the folder to write"))
	}
	s := synth.New(&c, o.Seed, o.Weights)
	w, err := checkpoint.NewWriter(o.Out, s.Entries, shardSize)
	if err != nil {
		return withCode(exitInput, fmt.Errorf("writing a checkpoint: %w", err))
	}
	defer w.Abort()
	if o.Tokenizer != "" {
		copied, err := checkpoint.CopySide(w, o.Tokenizer, tokenizerFiles)
		if err == nil && !slices.Contains(copied, "tokenizer.json") {
			err = fmt.Errorf("%s has no tokenizer.json", o.Tokenizer)
		}
		if err != nil {
			return withCode(exitInput, fmt.Errorf("--tokenizer: %w", err))
		}
	}
	start := time.Now()
	if err := s.Write(ctx, w); err != nil {
		return unwritten(o.Out, err)
	}
	if err := s.WriteConfig(w, m); err != nil {
		return err
	}
	if err := w.Commit(); err != nil {
		return err
	}
	return reportWritten(stdout, o.Out, s.Params, s.Bytes, time.Since(start))
}

func reportWritten(w io.Writer, out string, params, bytes int64, took time.Duration) error {
	_, err := fmt.Fprintf(w, "%s: %s parameters, %s, written in %.1f s (%s/s)\n", out, units.Count(params),
		units.Bytes(bytes),
		took.Seconds(), units.Bytes(int64(float64(bytes)/max(took.Seconds(), 1e-9))))
	return err
}

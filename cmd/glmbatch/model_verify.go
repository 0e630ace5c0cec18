package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"glmbatch/engine/glm5"
	"glmbatch/engine/verify"
	"glmbatch/kernels"
	"glmbatch/kernels/ranks"
)

type modelVerifyOptions struct {
	tp      int
	layout  string
	kvCache string
	act     string
	dense   string
	inputs  string
	split   bool

	latentEps float32
	json      bool
	device    deviceFlags
}

// newModelVerifyCommand compares a checkpoint with a reference's outputs.
func newModelVerifyCommand() *cobra.Command {
	var o modelVerifyOptions
	c := &cobra.Command{
		Use:   "verify DIR EXPECTED.safetensors",
		Short: "Compare a model's logits, hidden states and choices with a reference's",
		Long: `verify runs the prompts of EXPECTED.safetensors through the checkpoint in DIR and
compares, prompt by prompt: logits, hidden states after each layer, the experts
chosen, the positions selected, greedy tokens, and the prediction layer's logits,
as far as the file has them.

With --kv-cache f32, the default, nothing is rounded: logits may differ by 2e-3,
choices must be the same. Where a choice differs, the margin is printed by which this
model's own scores contradict the reference's. Within rounding (2^-16 of the row's
largest score; scores that are all 0 after ReLU, say) it is a tie: the rows before it
are judged, and what it moves is not. Any other difference is a fault. On a GPU the
products are float32 then, by kernels that are there for this; --split-inputs takes
those of jobs, which split each input into two BF16 values (16 bits). With bf16, the
cache's rounding may move logits by 3e-2 in the rows before the first differing
choice. Choices are jumps: small models have near ties, and a row beyond one is
reported, not judged. With fp8 and with --act int8, --dense-weights fp8 or
--activations bf16 the errors are reported only.

Greedy tokens must be the same wherever the reference's margin is larger than the
largest difference of logits. A * says that one differed within it, and that what
came after was not compared.

Exits 1 when something is out of tolerance.`,
		Example: `  glmbatch model verify models/tiny expected.safetensors
  glmbatch model verify models/tiny expected.safetensors --tp 2 --kv-cache bf16 --json`,
		Args: exactArgs(2, "a folder and a file"),
		RunE: func(c *cobra.Command, args []string) error { return runModelVerify(c, args[0], args[1], o) },
	}
	f := c.Flags()
	f.IntVar(&o.tp, "tp", 8, "ranks: 1, 2, 4 or 8")
	f.StringVar(&o.layout, "layout", string(glm5.Latency), layoutUsage)
	f.StringVar(&o.kvCache, "kv-cache", "f32", "format of the caches: f32, bf16 or fp8")
	f.StringVar(&o.act, "act", "",
		"inputs of NVFP4 experts: w4a16, w4a4 or int8 (default: w4a16, and w4a4 if the file has its logits)")
	f.StringVar(&o.dense, "dense-weights", "bf16",
		"bf16: as the checkpoint has them; fp8: round BF16 weights of attention, shared experts and dense layers at "+
			"load")
	f.StringVar(&o.inputs, "activations", "f32", activationsUsage)
	f.Float32Var(&o.latentEps, "latent-norm-eps", 0, latentEpsUsage)
	f.BoolVar(&o.split, "split-inputs", false, "with --kv-cache f32: the products of jobs, on a GPU")
	f.BoolVar(&o.json, "json", false, "print JSON")
	o.device.add(f)
	return c
}

func runModelVerify(c *cobra.Command, dir, path string, o modelVerifyOptions) error {
	if err := errors.Join(
		o.device.validate(), checkTP(o.tp), oneOf("layout", o.layout, layouts...),
		oneOf("kv-cache", o.kvCache, "f32", "bf16", "fp8"),
		oneOf("act", o.act, "w4a16", "w4a4", "int8", ""), oneOf("dense-weights", o.dense, "bf16", "fp8"),
		oneOf("activations", o.inputs, "f32", "bf16"), checkLatentEps(o.latentEps),
	); err != nil {
		return err
	}
	ck, config, err := openModel(dir)
	if err != nil {
		return err
	}
	defer ck.Close()
	if err := config.CheckTP(o.tp); err != nil {
		return withCode(exitInput, err)
	}
	want, err := verify.Open(path)
	if err != nil {
		return withCode(exitInput, err)
	}
	acts := []glm5.Act{glm5.Act(o.act)}
	if o.act == "" {
		acts[0] = glm5.W4A16
		if want.Has(0, "logits_w4a4") {
			acts = append(acts, glm5.W4A4)
		}
	}
	open := func() (*ranks.Group, error) { return o.device.open(o.tp) }
	var reports []*verify.Report
	failed := 0
	for _, act := range acts {
		r, err := verify.Run(c.Context(), ck, want, open, verify.Options{Layout: glm5.Layout(o.layout),
			KVCache: kernels.Format(o.kvCache), Act: act, Dense: kernels.Format(o.dense), SplitInputs: o.split,
			Activations: kernels.Format(o.inputs), LatentEps: o.latentEps})
		if stop := c.Context().Err(); stop != nil {
			return withCode(exitInterrupted, fmt.Errorf("interrupted: %w", stop))
		}
		if err != nil {
			return fmt.Errorf("verifying %s: %w", dir, err)
		}
		reports = append(reports, r)
		if !r.OK() {
			failed++
		}
		if !o.json {
			fmt.Fprintln(c.OutOrStdout(), r)
		}
	}
	if o.json {
		e := json.NewEncoder(c.OutOrStdout())
		e.SetIndent("", "  ")
		if err := e.Encode(reports); err != nil {
			return err
		}
	}
	if failed > 0 {
		return withCode(exitCheck, fmt.Errorf("%s is out of tolerance in %d of %d comparisons with %s", dir, failed,
			len(reports), path))
	}
	return nil
}

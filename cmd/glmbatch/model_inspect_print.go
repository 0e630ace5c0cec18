package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"glmbatch/kernels"
	"glmbatch/units"
)

func (r *inspection) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }
	line("%s\n", r.Dir)
	line("architecture\t%s", r.Architecture)
	line("layers\t%d: %d dense, %d with %d experts, %d a token", r.Layers, r.DenseLayers, r.Layers-r.DenseLayers,
		r.Experts, r.ExpertsPerToken)
	line("width\t%s, vocabulary %s, context %s", units.Digits(int64(r.Hidden)), units.Digits(int64(r.Vocab)),
		units.Digits(int64(r.Context)))
	line("attention\t%d heads, latent %d + %d rotary, indexer in %d of %d layers, top %s", r.Heads, r.Latent, r.Rope,
		r.IndexerLayers, r.Layers, units.Digits(int64(r.IndexTopK)))
	line("prediction layer\t%s", r.mtp())
	line("parameters\t%s (%s active a token)", units.Count(r.Params), units.Count(r.ActiveParams))
	line("files\t%d, %s", r.Files, units.Bytes(r.FileBytes))
	line("hash\t%s", r.Hash)
	w.Flush()

	w = tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	line("\n%-14s\tweights\tparameters\tbytes\tNVFP4\tformats\t", "part")
	var total partRow
	for _, p := range r.Parts {
		line("%-14s\t%s\t%s\t%s\t%.0f %%\t%s\t", p.Part, units.Digits(int64(p.Weights)), units.Count(p.Params),
			units.Bytes(p.Bytes), 100*float64(p.FP4)/float64(p.Weights), joinFormats(p.Formats))
		total.Weights, total.Params, total.Bytes, total.FP4 = total.Weights+p.Weights, total.Params+
			p.Params, total.Bytes+p.Bytes, total.FP4+p.FP4
	}
	line("%-14s\t%s\t%s\t%s\t%.0f %%\t\t", "all", units.Digits(int64(total.Weights)), units.Count(total.Params),
		units.Bytes(total.Bytes), 100*float64(total.FP4)/float64(max(total.Weights, 1)))
	line("\n%-14s\tweights\tparameters\tbytes\tbits a value\t", "format")
	for _, f := range r.Formats {
		line("%-14s\t%s\t%s\t%s\t%.2f\t", f.Format, units.Digits(int64(f.Weights)), units.Count(f.Params),
			units.Bytes(f.Bytes), 8*float64(f.Bytes)/float64(f.Params))
	}
	w.Flush()

	k := r.Rank
	w = tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line("\neach of %d ranks", k.TP)
	if k.Fault == "" {
		line("  weights\t%s", units.Bytes(k.Weights))
	}
	if k.MTP > 0 {
		line("  prediction layer\t%s, if loaded", units.Bytes(k.MTP))
	}
	line("  %s caches\t%s B a token: %s latent, %s indexer", k.KVCache, units.Digits(k.LatentToken+k.IndexToken),
		units.Digits(k.LatentToken), units.Digits(k.IndexToken))
	line("  for %s tokens\t%s", units.Digits(k.KVTokens), units.Bytes(k.Cache))
	if k.Fault == "" {
		line("  together\t%s, and what a step works in", units.Bytes(k.Weights+k.Cache))
	}
	w.Flush()
	if k.Fault != "" {
		fmt.Fprintf(out, "\n%s\n", strings.ReplaceAll(k.Fault, "\n", "\n  "))
	}

	r.problems(out, "missing weights", r.Missing)
	r.problems(out, "unreadable weights", r.Unreadable)
	r.problems(out, "experts of a layer in one tensor", r.Fused)
	r.problems(out, "tensors that would change what is computed", r.Skipped)
	r.problems(out, "unused tensors", r.Unused)
	r.problems(out, "contradictions", r.Contradictions)
	r.problems(out, "notes", r.Notes)
	if len(r.Missing)+len(r.Unreadable)+len(r.Fused)+len(r.Skipped)+len(r.Unused)+len(r.Contradictions)+
		len(r.Notes) == 0 {
		_, err := fmt.Fprintln(out, "\nnothing is missing, unused or contradictory")
		return err
	}
	return nil
}

func (r *inspection) mtp() string {
	switch {
	case r.HasMTP:
		return fmt.Sprintf("%d, %s parameters", r.MTPLayers, units.Count(r.MTPParams))
	case r.MTPLayers > 0:
		return fmt.Sprintf("%d announced, not stored", r.MTPLayers)
	}
	return "none"
}

func (r *inspection) problems(w io.Writer, what string, list []string) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s: %s\n", what, units.Digits(int64(len(list))))
	for i, s := range list {
		if i == 10 {
			fmt.Fprintf(w, "  and %s more (--format json has them all)\n", units.Digits(int64(len(list)-i)))
			break
		}
		fmt.Fprintf(w, "  %s\n", s)
	}
}

func joinFormats(fs []kernels.Format) string {
	var names []string
	for _, f := range fs {
		names = append(names, string(f))
	}
	return strings.Join(names, ", ")
}

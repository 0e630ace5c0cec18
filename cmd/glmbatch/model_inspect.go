package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"glmbatch/engine/checkpoint"
	"glmbatch/engine/glm5"
	"glmbatch/kernels"
)

type inspectOptions struct {
	TP       int
	KVCache  string
	KVTokens int64
	Format   string
	dense    string // of a run
}

func newModelInspectCommand() *cobra.Command {
	var o inspectOptions
	c := &cobra.Command{
		Use:   "inspect DIR",
		Short: "Say what a checkpoint is, what it takes, and what is wrong with it",
		Long: `inspect reads the headers of a checkpoint's files, not their data. It prints the
architecture, parameters, bytes by part and by number format, the memory that
each rank needs, cache bytes a token, and what is missing, unused, or stored in
another way than the quantisation configuration says.

It exits with code 1 if weights are missing or unreadable, or if --tp ranks cannot
share the model.`,
		Example: `  glmbatch model inspect models/GLM-5-NVFP4
  glmbatch model inspect models/GLM-5-NVFP4 --tp 8 --kv-cache fp8 --kv-tokens 500000
  glmbatch model inspect models/GLM-5-NVFP4 --format json | jq .rank`,
		Args: exactArgs(1, "one folder"),
		RunE: func(c *cobra.Command, args []string) error {
			return runModelInspect(c.OutOrStdout(), args[0], o)
		},
	}
	f := c.Flags()
	f.IntVar(&o.TP, "tp", 8, "ranks that share the model: 1, 2, 4 or 8")
	f.StringVar(&o.KVCache, "kv-cache", "bf16", "format of the caches: bf16, fp8 or f32")
	f.Int64Var(&o.KVTokens, "kv-tokens", 0, "tokens that the caches hold (default: one full context)")
	f.StringVar(&o.Format, "format", "text", "text or json")
	return c
}

func runModelInspect(w io.Writer, dir string, o inspectOptions) error {
	if err := oneOf("format", o.Format, "text", "json"); err != nil {
		return err
	}
	if err := oneOf("kv-cache", o.KVCache, "bf16", "fp8", "f32"); err != nil {
		return err
	}
	if err := checkTP(o.TP); err != nil {
		return err
	}
	if o.KVTokens < 0 || o.KVTokens > 1<<40 {
		return withCode(exitInput, fmt.Errorf("--kv-tokens %d: it must be from 0 to 2^40", o.KVTokens))
	}
	ck, c, err := openModel(dir)
	if err != nil {
		return err
	}
	defer ck.Close()
	r, err := inspect(ck, &c, o)
	if err != nil {
		return err
	}
	if o.Format == "json" {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		err = e.Encode(r)
	} else {
		err = r.print(w)
	}
	if err == nil {
		err = r.verdict()
	}
	return err
}

// inspection is what is printed. Bytes and counts are plain integers.
type inspection struct {
	Dir          string `json:"dir"`
	Architecture string `json:"architecture"`
	Hash         string `json:"hash"`
	Files        int    `json:"files"`
	FileBytes    int64  `json:"file_bytes"`

	Layers          int   `json:"layers"`
	DenseLayers     int   `json:"dense_layers"`
	IndexerLayers   int   `json:"indexer_layers"`
	MTPLayers       int   `json:"mtp_layers"` // announced
	HasMTP          bool  `json:"has_mtp"`    // stored
	Hidden          int   `json:"hidden_size"`
	Vocab           int   `json:"vocab_size"`
	Context         int   `json:"max_position_embeddings"`
	Heads           int   `json:"num_attention_heads"`
	Latent          int   `json:"kv_lora_rank"`
	Rope            int   `json:"qk_rope_head_dim"`
	IndexTopK       int   `json:"index_topk"`
	Experts         int   `json:"n_routed_experts"`
	ExpertsPerToken int   `json:"num_experts_per_tok"`
	Params          int64 `json:"parameters"` // of the main layers and outside
	ActiveParams    int64 `json:"active_parameters"`
	MTPParams       int64 `json:"mtp_parameters"`

	Parts   []partRow   `json:"parts"`
	Formats []formatRow `json:"formats"`
	Rank    rankRow     `json:"rank"`

	Missing        []string `json:"missing"`
	Unreadable     []string `json:"unreadable"`
	Fused          []string `json:"fused"`   // experts of a layer in one tensor
	Skipped        []string `json:"skipped"` // they would change what is computed
	Unused         []string `json:"unused"`
	Notes          []string `json:"notes"`
	Contradictions []string `json:"contradictions"`

	wrong error // why it cannot be run; nil: it can
}

// partRow sums the weights of one part of the model, or of all prediction layers.
type partRow struct {
	Part    string           `json:"part"`
	Weights int              `json:"weights"`
	Params  int64            `json:"parameters"`
	Bytes   int64            `json:"bytes"`
	FP4     int              `json:"nvfp4_weights"`
	Formats []kernels.Format `json:"formats"`
}

type formatRow struct {
	Format  kernels.Format `json:"format"`
	Weights int            `json:"weights"`
	Params  int64          `json:"parameters"`
	Bytes   int64          `json:"bytes"`
}

// rankRow is what one rank holds.
type rankRow struct {
	TP          int    `json:"tp"`
	Fault       string `json:"fault"`        // why the model cannot be shared so, in lines; "": it can
	Weights     int64  `json:"weight_bytes"` // these two 0 with a fault
	MTP         int64  `json:"mtp_bytes"`
	KVCache     string `json:"kv_cache"`
	LatentToken int64  `json:"latent_bytes_per_token"`
	IndexToken  int64  `json:"indexer_bytes_per_token"`
	KVTokens    int64  `json:"kv_tokens"`
	Cache       int64  `json:"cache_bytes"`
}

const mtpPart = "MTP layer"

func inspect(ck *checkpoint.Checkpoint, c *glm5.Config, o inspectOptions) (*inspection, error) {
	hash, err := ck.Hash()
	if err != nil {
		return nil, err
	}
	cover := c.Cover(ck)
	r := &inspection{
		Dir: ck.Name, Architecture: c.Architecture, Hash: hash, Files: len(ck.Files()), FileBytes: ck.Bytes(),
		Layers: c.Layers, MTPLayers: c.MTPLayers, HasMTP: cover.HasMTP, Hidden: c.Hidden, Vocab: c.Vocab,
		Context: c.MaxPositions,
		Heads:   c.Heads, Latent: c.KVLoRA, Rope: c.QKRope, IndexTopK: c.IndexTopK, Experts: c.Experts,
		ExpertsPerToken: c.ExpertsPerToken,
		Missing:         cover.Missing, Unreadable: cover.Unread, Fused: cover.Fused, Skipped: cover.Skipped,
		Unused: cover.Unused,
		Notes:  cover.Notes, Contradictions: cover.Contradictions,
		wrong: cover.Check(glm5.Options{}),
	}
	for _, list := range []*[]string{&r.Missing, &r.Unreadable, &r.Fused, &r.Skipped, &r.Unused, &r.Notes,
		&r.Contradictions} {
		if *list == nil {
			*list = []string{} // [] in JSON, not null
		}
	}
	for i := range c.Layers {
		if c.Dense(i) {
			r.DenseLayers++
		}
		if c.IndexerFull(i) {
			r.IndexerLayers++
		}
	}
	if r.Rank, err = rankOf(c, o); err != nil {
		return nil, err
	}
	for _, s := range cover.Weights {
		var share int64
		if r.Rank.Fault == "" {
			share = s.Loaded(o.TP, glm5.Options{KVCache: kernels.Format(o.KVCache), Dense: kernels.Format(o.dense)})
		}
		part := string(s.Part)
		if s.MTP {
			part = mtpPart
			r.MTPParams += s.Params()
			r.Rank.MTP += share
		} else {
			r.Params += s.Params()
			r.ActiveParams += c.Active(&s.Tensor)
			r.Rank.Weights += share
		}
		r.add(part, &s)
	}
	order := func(p partRow) int {
		if i := slices.Index(glm5.Parts, glm5.Part(p.Part)); i >= 0 {
			return i
		}
		return len(glm5.Parts) // the prediction layer
	}
	slices.SortFunc(r.Parts, func(a, b partRow) int { return cmp.Compare(order(a), order(b)) })
	return r, nil
}

func rankOf(c *glm5.Config, o inspectOptions) (rankRow, error) {
	k := rankRow{TP: o.TP, KVCache: o.KVCache, KVTokens: o.KVTokens}
	if err := c.CheckTP(o.TP); err != nil {
		k.Fault = err.Error()
	}
	if k.KVTokens == 0 {
		k.KVTokens = int64(c.MaxPositions)
	}
	need, err := c.Need(glm5.Options{KVCache: kernels.Format(o.KVCache)})
	k.LatentToken, k.IndexToken, k.Cache = need.Latent, need.Index, k.KVTokens*need.Token()
	return k, err
}

func (r *inspection) add(part string, s *glm5.Stored) {
	i := slices.IndexFunc(r.Parts, func(p partRow) bool { return p.Part == part })
	if i < 0 {
		i = len(r.Parts)
		r.Parts = append(r.Parts, partRow{Part: part})
	}
	p := &r.Parts[i]
	p.Weights, p.Params, p.Bytes = p.Weights+1, p.Params+s.Params(), p.Bytes+s.Bytes
	if s.File == kernels.FP4 {
		p.FP4++
	}
	if !slices.Contains(p.Formats, s.File) {
		p.Formats = append(p.Formats, s.File)
	}
	i = slices.IndexFunc(r.Formats, func(f formatRow) bool { return f.Format == s.File })
	if i < 0 {
		i = len(r.Formats)
		r.Formats = append(r.Formats, formatRow{Format: s.File})
	}
	f := &r.Formats[i]
	f.Weights, f.Params, f.Bytes = f.Weights+1, f.Params+s.Params(), f.Bytes+s.Bytes
}

// verdict is why the model cannot be run; nil: it can.
func (r *inspection) verdict() error {
	var why []string
	if r.wrong != nil {
		why = append(why, r.wrong.Error())
	}
	if r.Rank.Fault != "" {
		why = append(why, fmt.Sprintf("%d ranks cannot share it, try a smaller --tp", r.Rank.TP))
	}
	if why == nil {
		return nil
	}
	return withCode(exitCheck, fmt.Errorf("%s cannot be run: %s", r.Dir, strings.Join(why, ", and ")))
}

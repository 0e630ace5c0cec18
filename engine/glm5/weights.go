package glm5

import (
	"context"
	"fmt"

	"glmbatch/kernels"
)

// loaded is the weights on the ranks: buffers that have one index on every rank.
type loaded struct {
	embed  packed
	rope   kernels.Buffer // [context, rotary/2] pairs (cos, sin)
	layers []layer        // the prediction layer last, if it is loaded
	norm   kernels.Buffer // of the last layer's output
	head   linear
	mtp    *prediction // nil: not loaded
}

// layer is a decoder layer. Exactly one of mlp and experts is used.
type layer struct {
	attnNorm, mlpNorm kernels.Buffer
	// query latent | latent | rotary key, and indexer key | indexer weights where there is an indexer
	front                 linear
	queryNorm, latentNorm kernels.Buffer
	queryUp               linear
	absorb                packed // a head's matrix takes its query into the latent space
	valuesUp              packed // a head's matrix takes the latent to its values
	out                   linear
	index                 *indexer // nil: the last selection is used again
	mlp                   mlp
	experts               *mixture // nil: a dense layer

	latentCache kernels.Buffer
}

type indexer struct {
	queryUp          linear
	keyNorm, keyBias kernels.Buffer
	cache            kernels.Buffer
}

type mlp struct{ gateUp, down linear }

type mixture struct {
	router   linear
	bias     kernels.Buffer
	up, down packed
	shared   mlp
}

// prediction is what the MTP layer has beside a decoder layer.
type prediction struct {
	embedNorm, hiddenNorm kernels.Buffer
	join                  linear
	norm                  kernels.Buffer
}

// try keeps the first error of a list of loads, so that a layer reads as a list.
type try struct{ err error }

func (t *try) linear(l *loader, modules ...string) (w linear) {
	if t.err == nil {
		w, t.err = l.linear(modules...)
	}
	return w
}

func (t *try) vector(l *loader, name string, n int) (b kernels.Buffer) {
	if t.err == nil {
		b, t.err = l.vector(name, n)
	}
	return b
}

func (t *try) packed(load func() (packed, error)) (p packed) {
	if t.err == nil {
		p, t.err = load()
	}
	return p
}

func (l *loader) weights(ctx context.Context, o Options) (*loaded, error) {
	w := &loaded{}
	var t try
	l.layers = o.layers(l.c)
	defer l.reading.Wait()
	l.enter(-1)
	w.embed = t.packed(l.embedding)
	w.norm = t.vector(l, "model.norm.weight", l.c.Hidden)
	w.head = t.head(l)
	if t.err == nil {
		w.rope, t.err = l.rope(o.Context)
	}
	if t.err != nil {
		return nil, fmt.Errorf("loading weights: %w", t.err)
	}
	for i := range l.layers {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		d, err := l.layer(i)
		if err != nil {
			return nil, fmt.Errorf("loading layer %d: %w", i, err)
		}
		w.layers = append(w.layers, d)
		if l.c.IsMTP(i) {
			if w.mtp, err = l.prediction(i); err != nil {
				return nil, fmt.Errorf("loading layer %d: %w", i, err)
			}
		}
	}
	return w, nil
}

// head is split by rows of the vocabulary where a layout splits it; a tied one is the
// embedding's table.
func (t *try) head(l *loader) linear {
	if l.c.TiedHead {
		tied := l.tensors["model.embed_tokens"]
		tied.Part, tied.Split = Head, Rows
		tied = l.layout.Of(tied)
		l.tensors["model.embed_tokens"] = tied
	}
	return t.linear(l, l.c.HeadModule())
}

func (l *loader) layer(i int) (layer, error) {
	l.enter(i)
	c, at, attn := l.c, LayerPrefix(i), LayerPrefix(i)+"self_attn."
	var t try
	d := layer{
		attnNorm:   t.vector(l, at+"input_layernorm.weight", c.Hidden),
		mlpNorm:    t.vector(l, at+"post_attention_layernorm.weight", c.Hidden),
		queryNorm:  t.vector(l, attn+"q_a_layernorm.weight", c.QLoRA),
		latentNorm: t.vector(l, attn+"kv_a_layernorm.weight", c.KVLoRA),
		queryUp:    t.linear(l, attn+"q_b_proj"),
		absorb:     t.packed(func() (packed, error) { return l.absorb(attn + "kv_b_proj") }),
		valuesUp:   t.packed(func() (packed, error) { return l.valuesUp(attn + "kv_b_proj") }),
		out:        t.linear(l, attn+"o_proj"),
	}
	first := []string{attn + "q_a_proj", attn + "kv_a_proj_with_mqa"}
	if c.IndexerFull(i) {
		own := attn + "indexer."
		first = append(first, own+"wk", own+"weights_proj")
		d.index = &indexer{
			queryUp: t.linear(l, own+"wq_b"),
			keyNorm: t.vector(l, own+"k_norm.weight", c.IndexHeadDim),
			keyBias: t.vector(l, own+"k_norm.bias", c.IndexHeadDim),
		}
	}
	d.front = t.linear(l, first...)
	if c.Dense(i) {
		d.mlp = t.mlp(l, at+"mlp.")
		return d, t.err
	}
	d.experts = &mixture{
		router: t.linear(l, at+"mlp.gate"),
		bias:   t.vector(l, at+"mlp.gate.e_score_correction_bias", c.Experts),
		shared: t.mlp(l, at+"mlp.shared_experts."),
		up:     t.packed(func() (packed, error) { return l.expertsOf(i, "moe_up", "gate_proj", "up_proj") }),
		down:   t.packed(func() (packed, error) { return l.expertsOf(i, "moe_down", "down_proj") }),
	}
	return d, t.err
}

func (t *try) mlp(l *loader, prefix string) mlp {
	return mlp{gateUp: t.linear(l, prefix+"gate_proj", prefix+"up_proj"), down: t.linear(l, prefix+"down_proj")}
}

func (l *loader) prediction(i int) (*prediction, error) {
	at, n := LayerPrefix(i), l.c.Hidden
	var t try
	p := &prediction{
		embedNorm:  t.vector(l, at+"enorm.weight", n),
		hiddenNorm: t.vector(l, at+"hnorm.weight", n),
		join:       t.linear(l, at+"eh_proj"),
		norm:       t.vector(l, at+"shared_head.norm.weight", n),
	}
	return p, t.err
}

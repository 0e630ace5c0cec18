package verify

import (
	"fmt"
	"slices"

	"glmbatch/engine"
	"glmbatch/engine/checkpoint"
	"glmbatch/engine/glm5"
	"glmbatch/kernels"
	"glmbatch/kernels/ranks"
)

// Options say what of a model is checked. The zero value is usable.
type Options struct {
	KVCache kernels.Format // "": F32
	Act     glm5.Act       // "": W4A16
}

// tolerances of logits by cache format, absolute.
var tolerances = map[kernels.Format]float64{kernels.F32: 2e-3, kernels.BF16: 3e-2}

// checker runs one model's prompts.
type checker struct {
	m    *glm5.Model
	c    *glm5.Config
	want *Expected
	in   glm5.Batch
}

// Run loads ck on the ranks of g and compares it with a reference, prompt by
// prompt. An error is that it could not; what differs is in the report.
func Run(ck *checkpoint.Checkpoint, want *Expected, g *ranks.Group, o Options) (*Report, error) {
	if o.KVCache == "" {
		o.KVCache = kernels.F32
	}
	c, err := glm5.ParseConfig(ck.Config())
	if err != nil {
		return nil, err
	}
	longest, err := want.longest(&c)
	if err != nil {
		return nil, err
	}
	m, err := glm5.Load(ck, g, glm5.Options{
		KVCache: o.KVCache, Act: o.Act, MTP: want.Has(0, "mtp_logits") && c.MTPLayers > 0,
		MaxRows: longest, MaxLogits: longest, MaxSeqs: 1, Context: longest, Pages: longest/kernels.PageTokens + 1,
	})
	if err != nil {
		return nil, err
	}
	r := &Report{Ranks: g.Ranks(), KVCache: o.KVCache, Act: m.Options().Act, Reference: "logits", Tolerance: tolerances[o.KVCache], Exact: o.KVCache == kernels.F32}
	switch r.Act {
	case glm5.W4A4:
		if want.Has(0, "logits_w4a4") {
			r.Reference = "logits_w4a4"
		} else {
			r.Tolerance = 0 // only weights are rounded in the reference
		}
		r.Exact = false
	case glm5.W4A8:
		r.Tolerance, r.Exact = 0, false
	}
	k := &checker{m: m, c: &m.Config, want: want}
	for i := range want.Prompts() {
		p, err := k.prompt(i, r)
		if err != nil {
			return nil, fmt.Errorf("prompt %d: %w", i, err)
		}
		r.judge(&p)
		r.Prompts = append(r.Prompts, p)
	}
	return r, nil
}

// longest returns the most positions that a prompt needs, and checks all of
// their tokens.
func (e *Expected) longest(c *glm5.Config) (int, error) {
	most := 0
	for i := range e.n {
		total := 0
		for _, name := range []string{"input_ids", "greedy", "mtp_input_ids"} {
			if !e.Has(i, name) {
				continue
			}
			ids, _, err := e.ints(i, name)
			if err != nil {
				return 0, err
			}
			if len(ids) == 0 || slices.Min(ids) < 0 || int(slices.Max(ids)) >= c.Vocab {
				return 0, fmt.Errorf("%s has no tokens, or some that are not in 0..%d", key(i, name), c.Vocab-1)
			}
			if name == "mtp_input_ids" {
				total = max(total, len(ids))
			} else {
				total += len(ids)
			}
		}
		most = max(most, total)
	}
	if most > c.MaxPositions {
		return 0, fmt.Errorf("prompts of up to %d tokens do not fit the model's context of %d", most, c.MaxPositions)
	}
	return most, nil
}

// prompt compares all that the reference has of prompt i.
func (k *checker) prompt(i int, r *Report) (Prompt, error) {
	ids, _, err := k.want.ints(i, "input_ids")
	if err != nil {
		return Prompt{}, err
	}
	p := Prompt{Prompt: i, Tokens: len(ids), HiddenLayer: -1}
	layers, err := k.layers(i, ids, &p, r)
	if err != nil {
		return p, err
	}
	if err := k.forward(ids, layers); err != nil {
		return p, err
	}
	if p.Logits, err = k.logits(i, r.Reference, len(ids)); err != nil {
		return p, err
	}
	if k.want.Has(i, "greedy") && r.Reference == "logits" {
		if err := k.greedy(i, ids, &p); err != nil {
			return p, err
		}
	}
	if k.want.Has(i, "mtp_logits") && k.m.Options().MTP {
		return p, k.prediction(i, &p)
	}
	return p, nil
}

// logits returns the largest difference of the last program's logits.
func (k *checker) logits(i int, name string, rows int) (float64, error) {
	want, err := k.want.floats(i, name, rows*k.c.Vocab)
	if err != nil {
		return 0, err
	}
	got := make([]float32, len(want))
	if err := k.m.Logits(got); err != nil {
		return 0, err
	}
	return maxDiff(got, want), nil
}

// fill makes a batch of one sequence whose logits are all wanted.
func (k *checker) fill(ids []int32) error {
	k.in.Reset()
	for pos, id := range ids {
		row := k.in.Add(id, int32(pos), 0, int32(pos))
		k.in.Logits = append(k.in.Logits, row)
		k.in.Params = append(k.in.Params, kernels.SampleParams{TopP: 1, Repetition: 1, Logprobs: -1, Seen: -1})
	}
	k.in.Long = min(len(ids), k.c.IndexTopK)
	pages := make([]int32, k.m.Options().Pages)
	for i := range pages {
		pages[i] = int32(i)
	}
	if err := k.m.Check(&k.in); err != nil {
		return err
	}
	if err := k.m.SetPages(0, pages[:(len(ids)-1)/kernels.PageTokens+1]); err != nil {
		return err
	}
	return k.m.Upload(&k.in)
}

// forward runs the whole prompt as one step, a layer at a time. after is called
// as each layer has ended, with -1 after the embedding and after the end.
func (k *checker) forward(ids []int32, after func(layer int) error) error {
	if err := k.fill(ids); err != nil {
		return err
	}
	calls := k.m.Program(&k.in)
	for len(calls) > 0 {
		n := slices.IndexFunc(calls, func(c kernels.Call) bool { return c.Layer != calls[0].Layer })
		if n < 0 {
			n = len(calls)
		}
		if err := k.m.Group().Run(calls[:n], nil); err != nil {
			return err
		}
		if after != nil {
			if err := after(int(calls[0].Layer)); err != nil {
				return err
			}
		}
		calls = calls[n:]
	}
	return nil
}

// greedy generates as many tokens as the reference has. A token may differ where
// the reference's best two logits are closer than the measured error; what
// follows then is another text.
func (k *checker) greedy(i int, ids []int32, p *Prompt) error {
	want, _, err := k.want.ints(i, "greedy")
	if err != nil {
		return err
	}
	margin, err := k.want.floats(i, "greedy_margin", len(want))
	if err != nil {
		return err
	}
	e, err := engine.New(k.m, engine.Options{})
	if err != nil {
		return err
	}
	if err := e.Add(engine.Request{Prompt: ids, Sampling: engine.Sampling{MaxTokens: len(want), IgnoreEOS: true}}); err != nil {
		return err
	}
	for at := 0; !e.Idle(); {
		tokens, err := e.Step()
		if err != nil {
			return err
		}
		for _, t := range tokens {
			switch {
			case p.GreedyAfter > 0:
				p.GreedyAfter++
			case t.Token == want[at]:
				p.Greedy++
				p.GreedyEqual++
			case float64(margin[at]) > p.Logits:
				p.Greedy++
				return nil
			default:
				p.GreedyAfter = 1
			}
			at++
		}
	}
	return nil
}

// prediction runs the main layers and then the prediction layer.
func (k *checker) prediction(i int, p *Prompt) error {
	ids, _, err := k.want.ints(i, "mtp_input_ids")
	if err != nil {
		return err
	}
	if len(ids) < 2 {
		return nil
	}
	if err := k.forward(ids, nil); err != nil {
		return err
	}
	if err := k.fill(ids[1:]); err != nil { // row r: the token after position r
		return err
	}
	if err := k.m.Group().Run(k.m.MTPProgram(&k.in), nil); err != nil {
		return err
	}
	p.MTPTokens = len(ids) - 1
	p.MTP, err = k.logits(i, "mtp_logits", p.MTPTokens)
	return err
}

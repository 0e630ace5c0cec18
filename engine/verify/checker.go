package verify

import (
	"context"
	"fmt"

	"glmbatch/engine"
	"glmbatch/engine/checkpoint"
	"glmbatch/engine/glm5"
	"glmbatch/kernels"
)

// checker runs one model's prompts.
type checker struct {
	m     *glm5.Model
	ck    *checkpoint.Checkpoint
	c     *glm5.Config
	want  *Expected
	in    glm5.Batch
	seat  int       // of the prompt's sequence: ranks that have their own take turns
	plain [][]trail // see all; nil: this run is the plain one
}

// all compares every prompt. trails, if not nil, gets the choices that were
// made: of each prompt, and of its text for the prediction layer.
func (k *checker) all(ctx context.Context, r *Report, trails *[][]trail) error {
	r.Ranks = k.m.Group().Ranks()
	for i := range k.want.Prompts() {
		if err := ctx.Err(); err != nil {
			return err
		}
		p := Prompt{Prompt: i, HiddenLayer: -1}
		made, err := k.prompt(i, &p, r)
		if err != nil {
			return fmt.Errorf("prompt %d: %w", i, err)
		}
		if trails != nil {
			*trails = append(*trails, made)
		}
		r.Prompts = append(r.Prompts, p)
	}
	// How large an error may be is known now.
	for i := range r.Prompts {
		p := &r.Prompts[i]
		if k.want.Has(i, "greedy") && r.Reference == "logits" {
			if err := k.greedy(i, p, max(r.Worst(), p.Logits)); err != nil {
				return fmt.Errorf("prompt %d: %w", i, err)
			}
		}
		r.judge(p)
	}
	return nil
}

// prompt compares logits, and what the layers leave, of prompt i.
func (k *checker) prompt(i int, p *Prompt, r *Report) ([]trail, error) {
	ids, _, err := k.want.ints(i, "input_ids")
	if err != nil {
		return nil, err
	}
	p.Tokens, k.seat = len(ids), i%k.m.Homes()*k.m.Options().MaxSeqs
	l := &layers{checker: k, prompt: i, rows: len(ids), p: p, made: make(trail, len(ids)), tied: len(ids)}
	if err := l.expect(r); err != nil {
		return nil, err
	}
	if err := k.forward(ids, l); err != nil {
		return nil, err
	}
	made := []trail{l.made}
	p.Settled = min(k.settled(i, made), l.tied)
	if p.Logits, p.SettledLogits, err = k.logits(i, r.Reference, len(ids), p.Settled); err != nil {
		return nil, err
	}
	if !k.want.Has(i, "mtp_logits") || !k.m.Options().MTP || r.Reference != "logits" {
		return made, nil
	}
	m, err := k.prediction(i, p)
	return append(made, m), err
}

// settled returns how many rows come before the first whose choices differ from
// those of the plain run: the rows that rounding moves, but that no choice does.
func (k *checker) settled(i int, made []trail) int {
	last := made[len(made)-1]
	if k.plain == nil {
		return len(last)
	}
	for r, h := range k.plain[i][len(made)-1] {
		if last[r] != h {
			return r
		}
	}
	return len(last)
}

// logits returns the largest difference of the last program's logits: of all
// rows, and of the settled ones.
func (k *checker) logits(i int, name string, rows, settled int) (worst, settledWorst float64, err error) {
	want, err := k.want.floats(i, name, rows*k.c.Vocab)
	if err != nil {
		return 0, 0, err
	}
	got := make([]float32, len(want))
	if err := k.m.Logits(got); err != nil {
		return 0, 0, err
	}
	n := settled * k.c.Vocab
	settledWorst = maxDiff(got[:n], want[:n])
	return larger(settledWorst, maxDiff(got[n:], want[n:])), settledWorst, nil
}

// fill makes a batch of one sequence whose logits are all wanted.
func (k *checker) fill(ids []int32) error {
	k.in.Reset()
	for pos, id := range ids {
		row := k.in.Add(id, int32(pos), int32(k.seat), int32(pos))
		k.in.Logits = append(k.in.Logits, row)
		k.in.Params = append(k.in.Params, kernels.Greedy())
	}
	pages := make([]int32, k.m.Options().Pages)
	for i := range pages {
		pages[i] = int32(i)
	}
	if err := k.m.SetPages(k.seat, pages[:(len(ids)-1)/kernels.PageTokens+1]); err != nil {
		return err
	}
	return k.m.Upload(&k.in)
}

// forward runs a whole text as one step.
func (k *checker) forward(ids []int32, l *layers) error {
	if err := k.fill(ids); err != nil {
		return err
	}
	return k.run(k.m.Program(&k.in), l)
}

// run runs a program a layer at a time, and stops where an indexer has scored. l
// looks at what each layer leaves, and at what is before and after them.
func (k *checker) run(calls []kernels.Call, l *layers) error {
	for len(calls) > 0 {
		n := 1
		for n < len(calls) && calls[n].Layer == calls[0].Layer && !scores(&calls[n-1]) {
			n++
		}
		if err := k.m.Group().Run(calls[:n], nil); err != nil {
			return err
		}
		last := &calls[n-1]
		calls = calls[n:]
		if scores(last) {
			if err := l.scored(last); err != nil {
				return err
			}
		}
		if len(calls) > 0 && calls[0].Layer == last.Layer {
			continue
		}
		if err := l.after(int(last.Layer)); err != nil {
			return err
		}
	}
	return nil
}

// scores reports whether a call leaves an indexer's scores.
func scores(c *kernels.Call) bool { return kernels.Lookup(c.Kernel).Op == "index_logits" }

// greedy generates as many tokens as the reference has. A token may differ where
// the reference's best two logits are not further apart than logits were found
// to be wrong; what follows then is another text.
func (k *checker) greedy(i int, p *Prompt, wrong float64) error {
	ids, _, err := k.want.ints(i, "input_ids")
	if err != nil {
		return err
	}
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
	if err := e.Add(engine.Request{Prompt: ids, Sampling: engine.Sampling{MaxTokens: len(want),
		IgnoreEOS: true}}); err != nil {
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
			case float64(margin[at]) > wrong:
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

// prediction runs the main layers and then the prediction layer. It returns the
// choices behind each row of logits.
func (k *checker) prediction(i int, p *Prompt) (trail, error) {
	ids, _, err := k.want.ints(i, "mtp_input_ids")
	if err != nil || len(ids) < 2 {
		return nil, err
	}
	l := &layers{checker: k, prompt: i, rows: len(ids), made: make(trail, len(ids)), tied: len(ids)}
	if err := k.forward(ids, l); err != nil {
		return nil, err
	}
	p.MTPTokens = len(ids) - 1
	l.rows, l.made = p.MTPTokens, l.made[:p.MTPTokens]
	if err := k.fill(ids[1:]); err != nil { // row r: the token after position r
		return nil, err
	}
	if err := k.run(k.m.MTPProgram(&k.in), l); err != nil {
		return nil, err
	}
	p.MTPSettled = k.settled(i, []trail{nil, l.made})
	p.MTP, p.SettledMTP, err = k.logits(i, "mtp_logits", p.MTPTokens, p.MTPSettled)
	return l.made, err
}

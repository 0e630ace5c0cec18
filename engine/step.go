package engine

import (
	"slices"

	"glmbatch/kernels"
)

// layOut turns the scheduler's batch into rows: first those that attend to all
// of their context, then those whose context is longer than the indexer's top-k.
func (e *Engine) layOut(f *flight) {
	in, c := &f.Batch, &e.model.Config
	in.Reset()
	for _, k := range f.batch.Copies {
		in.Copies = append(in.Copies, k.From, k.To)
	}
	f.wanted = f.wanted[:0]
	e.ask(f)
	for _, long := range []bool{false, true} {
		if long {
			in.Long = len(in.Tokens)
		}
		for _, it := range f.batch.Items {
			q := it.Seq
			if pages := e.sched.Common(q); len(pages) > 0 {
				in.Share(int32(q.Seat), pages)
			}
			for pos := it.From; pos < it.From+it.Count; pos++ {
				if c.IsLong(pos) != long {
					continue
				}
				slot := q.Pages[pos/kernels.PageTokens]*kernels.PageTokens + int32(pos%kernels.PageTokens)
				row := in.Add(q.Tokens[pos], int32(pos), int32(q.Seat), slot)
				if q.Whole {
					e.wantPrompt(f, e.live[q.ID], row, pos)
				}
				if it.Sample && pos == it.From+it.Count-1 {
					e.want(f, e.live[q.ID], row)
				}
			}
		}
	}
}

// want adds a row of logits for q's next token. Where steps are launched ahead,
// the token that it goes on from may still be on its way: the ranks have it.
func (e *Engine) want(f *flight, q *sequence, row int32) {
	p, at, from := q.params(), len(q.Tokens), int32(-1)
	if at >= q.Max {
		e.addRow(f, wanted{q, at, ending}, row, kernels.Greedy(), -1)
		return
	}
	if q.step == f.Number-1 && e.ring.Len() > 0 {
		from = q.row
	}
	if q.guide != nil {
		p.Mask = f.mask(q, e.model.SeenWords(), from < 0)
	}
	if q.permitted != nil {
		p.Allowed = e.model.AllowedRow(q.Seat)
	}
	n := len(f.Batch.Entries)
	var biases int
	f.Batch.Entries, biases = q.entries(f.Batch.Entries)
	p.Entries, p.Biases, p.Labels = int32(n), int32(biases), int32(len(q.labels))
	p.Forced = q.think.force(at)
	e.addRow(f, wanted{q, at, next}, row, p, from)
}

// wantPrompt adds a row of logits for the prompt's next token, if it was not wanted yet.
func (e *Engine) wantPrompt(f *flight, q *sequence, row int32, pos int) {
	if pos+1 != q.scored || q.scored >= q.Prompt {
		return
	}
	p := kernels.Greedy()
	p.Logprobs, p.Forced = int32(q.sampling.PromptLogprobs)-1, q.Tokens[q.scored]
	e.addRow(f, wanted{q, q.scored, prompt}, row, p, -1)
	q.scored++
}

// addRow adds a row of logits, which goes on from a row of the step before or from none.
func (e *Engine) addRow(f *flight, w wanted, row int32, p kernels.SampleParams, from int32) {
	f.Batch.Logits = append(f.Batch.Logits, row)
	f.Batch.Params = append(f.Batch.Params, p)
	f.wanted = append(f.wanted, w)
	if e.o.Ahead > 1 {
		f.Batch.From = append(f.Batch.From, from)
	}
}

// upload takes the rows, and what changed of page tables, bitmaps and counts, to the
// ranks.
func (e *Engine) upload(f *flight) error {
	for _, s := range f.batch.Moved {
		if err := e.model.SetPages(s.Seat, s.Pages); err != nil {
			return err
		}
		e.live[s.ID].fresh = all // the seat may be new
	}
	for i, q := range f.wanted {
		if q.what != next {
			continue
		}
		if err := e.uploadSteering(q.sequence, len(f.Batch.From) > 0 && f.Batch.From[i] >= 0); err != nil {
			return err
		}
	}
	return e.model.Upload(&f.Batch)
}

// known fills in the tokens that were not known when the step was launched, and
// returns what it was timed at without the call that fed them.
func (f *flight) known(t kernels.Trace) kernels.Trace {
	for i, from := range f.Batch.From {
		if from >= 0 {
			q := &f.wanted[i]
			f.Batch.Tokens[f.Batch.Logits[i]], f.Batch.Params[i].Last = q.Tokens[q.at-1], q.Tokens[q.at-1]
		}
	}
	f.Batch.From = f.Batch.From[:0]
	if len(t.Calls) == 0 || t.Calls[0].Kernel != "feed" {
		return t
	}
	t.Calls, t.Spans = t.Calls[1:], slices.Clone(t.Spans)
	for r, s := range t.Spans {
		t.Spans[r] = s[1:]
	}
	return t
}

// commit gives the sampled tokens to their sequences and ends those that are
// complete.
func (e *Engine) commit(f *flight) {
	e.tokens = e.tokens[:0]
	for i := range f.wanted {
		if q := &f.wanted[i]; !q.ended { // by a token that was not known yet when this row was launched
			e.tokens = append(e.tokens, e.land(q, &f.Sampled[i]))
		}
	}
}

// land makes a token of what came of a row of logits.
func (e *Engine) land(q *wanted, s *kernels.Sampled) Token {
	t := Token{ID: q.ID, Token: s.Token, Prompt: q.what == prompt}
	switch wanted := q.sampling.Logprobs; {
	case q.lost != nil || s.Token < 0:
		t.Token, t.Reason, t.Err = -1, Failed, q.lost
	case q.what == ending:
		t.Token, t.Reason = -1, Length
	case q.what == prompt:
		t.Logprob, t.Top = s.Logprob, top(s, q.sampling.PromptLogprobs-1)
	default:
		t.Reason = q.ends(s.Token, q.at, e.ends)
		if wanted > 0 || len(q.labels) > 0 {
			n := max(0, wanted-1)
			t.Logprob, t.Top, t.Labels = s.Logprob, top(s, n), labels(s, n, len(q.labels))
		}
		if q.guide != nil {
			q.guide.Add(s.Token)
		}
		q.set(q.at, s.Token)
	}
	if t.Reason != Going {
		e.finish(q.sequence)
	}
	return t
}

// labels returns the n that stand behind so many alternatives; nil for 0.
func labels(s *kernels.Sampled, behind, n int) []Logprob {
	var l []Logprob
	for i := behind; i < behind+n; i++ {
		l = append(l, Logprob{s.IDs[i], s.Logps[i]})
	}
	return l
}

// top returns the n most likely tokens; nil for 0.
func top(s *kernels.Sampled, n int) []Logprob {
	var l []Logprob
	for i := range min(n, kernels.MaxLogprobs) {
		if s.IDs[i] < 0 {
			break
		}
		l = append(l, Logprob{s.IDs[i], s.Logps[i]})
	}
	return l
}

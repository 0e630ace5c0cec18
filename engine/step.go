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
	f.Batch.Logits = append(f.Batch.Logits, row)
	from := int32(-1)
	if q.step == f.Number-1 && e.ring.Len() > 0 {
		from = q.row
	}
	p := q.params()
	if q.guide != nil {
		p.Mask = f.mask(q, e.model.SeenWords(), from < 0)
	}
	f.Batch.Params = append(f.Batch.Params, p)
	f.wanted = append(f.wanted, wanted{q, len(q.Tokens)})
	if e.o.Ahead > 1 {
		f.Batch.From = append(f.Batch.From, from)
	}
}

// upload takes the rows, and what changed of page tables and of the bitmaps of
// tokens seen, to the ranks.
func (e *Engine) upload(f *flight) error {
	for _, s := range f.batch.Moved {
		if err := e.model.SetPages(s.Seat, s.Pages); err != nil {
			return err
		}
		e.live[s.ID].fresh = all // the seat may be new
	}
	for i, q := range f.wanted {
		first, words := q.unseen(len(f.Batch.From) > 0 && f.Batch.From[i] >= 0)
		if len(words) == 0 {
			continue
		}
		if err := e.model.SetSeen(q.Seat, first, words); err != nil {
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
	for i, q := range f.wanted {
		if q.ended { // by a token that was not known yet when this row was launched
			continue
		}
		s := &f.Sampled[i]
		if q.lost != nil || s.Token < 0 {
			e.finish(q.sequence)
			e.tokens = append(e.tokens, Token{ID: q.ID, Token: -1, Reason: Failed, Err: q.lost})
			continue
		}
		if q.guide != nil {
			q.guide.Add(s.Token)
		}
		t := Token{ID: q.ID, Token: s.Token, Reason: q.ends(s.Token, q.at, e.ends)}
		if q.sampling.Logprobs > 0 {
			t.Logprob = s.Logprob
			t.Top = top(s, q.sampling.Logprobs-1)
		}
		q.set(q.at, s.Token)
		if t.Reason != Going {
			e.finish(q.sequence)
		}
		e.tokens = append(e.tokens, t)
	}
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

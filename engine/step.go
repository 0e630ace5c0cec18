package engine

import (
	"slices"

	"glmbatch/engine/sched"
	"glmbatch/kernels"
)

// layOut turns the scheduler's batch into rows: first those that attend to all
// of their context, then those whose context is longer than the indexer's top-k.
func (e *Engine) layOut(b *sched.Batch) {
	in, c := &e.in, &e.model.Config
	in.Reset()
	e.wanted = e.wanted[:0]
	for _, long := range []bool{false, true} {
		if long {
			in.Long = len(in.Tokens)
		}
		for _, it := range b.Items {
			q := it.Seq
			for pos := it.From; pos < it.From+it.Count; pos++ {
				if c.IsLong(pos) != long {
					continue
				}
				slot := q.Pages[pos/kernels.PageTokens]*kernels.PageTokens + int32(pos%kernels.PageTokens)
				row := in.Add(q.Tokens[pos], int32(pos), int32(q.Seat), slot)
				if it.Sample && pos == it.From+it.Count-1 {
					s := e.live[q.ID]
					in.Logits = append(in.Logits, row)
					in.Params = append(in.Params, s.params())
					e.wanted = append(e.wanted, s)
				}
			}
		}
	}
	e.sampled = slices.Grow(e.sampled[:0], len(e.wanted))[:len(e.wanted)]
}

// upload takes the rows, and what changed of page tables and of the bitmaps of
// tokens seen, to the ranks.
func (e *Engine) upload(b *sched.Batch) error {
	for _, s := range b.Moved {
		if err := e.model.SetPages(s.Seat, s.Pages); err != nil {
			return err
		}
		e.live[s.ID].fresh = all // the seat may be new
	}
	for _, q := range e.wanted {
		if q.seen == nil {
			continue
		}
		first, words := 0, q.seen
		if q.fresh != all {
			first, words = q.fresh, q.seen[q.fresh:q.fresh+1]
		}
		if err := e.model.SetSeen(q.Seat, first, words); err != nil {
			return err
		}
		q.fresh = 0 // the next token sets it
	}
	return e.model.Upload(&e.in)
}

// commit gives the sampled tokens to their sequences and ends those that are
// complete.
func (e *Engine) commit(b *sched.Batch) {
	e.sched.Commit(b)
	e.tokens = e.tokens[:0]
	for i, q := range e.wanted {
		s := &e.sampled[i]
		if s.Token < 0 {
			e.finish(q)
			e.tokens = append(e.tokens, Token{ID: q.ID, Token: s.Token, Reason: Failed})
			continue
		}
		t := Token{ID: q.ID, Token: s.Token, Reason: q.ends(s.Token, e.ends)}
		if q.sampling.Logprobs > 0 {
			t.Logprob = s.Logprob
			t.Top = top(s, q.sampling.Logprobs-1)
		}
		q.append(s.Token)
		if t.Reason != Going {
			e.finish(q)
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

package engine

import (
	"slices"

	"glmbatch/engine/sched"
	"glmbatch/kernels"
)

// layOut turns the scheduler's batch into rows, of each rank that has sequences of its own:
// first those that attend to all of their context, then those whose context is longer than
// the indexer's top-k.
func (e *Engine) layOut(f *flight) {
	in := &f.Batch
	in.Reset()
	for _, k := range f.batch.Copies {
		in.Copies = append(in.Copies, k.From, k.To)
	}
	f.wanted = f.wanted[:0]
	layer := f.drafts > 0 && !e.spec.o.NGram
	e.ask(f)
	for items := f.batch.Items; len(items) > 0; {
		n := 1
		for n < len(items) && items[n].Seq.Rank == items[0].Seq.Rank {
			n++
		}
		e.layOutRank(f, items[:n], layer)
		items = items[n:]
	}
	if layer {
		e.tips(f)
	}
}

// layOutRank adds the rows of one rank's sequences.
func (e *Engine) layOutRank(f *flight, items []sched.Item, layer bool) {
	in, c := &f.Batch, &e.model.Config
	for _, long := range []bool{false, true} {
		for _, it := range items {
			q := it.Seq
			if pages := e.sched.Common(q); len(pages) > 0 {
				in.Share(int32(q.Seat), pages)
			}
			for pos := it.From; pos < it.From+it.Count+it.Drafts; pos++ {
				if c.IsLong(pos) != long {
					continue
				}
				slot := q.Pages[pos/kernels.PageTokens]*kernels.PageTokens + int32(pos%kernels.PageTokens)
				row := in.Add(tokenAt(q, pos), int32(pos), int32(q.Seat), slot)
				if layer {
					in.Next = append(in.Next, tokenAt(q, pos+1))
				}
				if q.Whole {
					e.wantPrompt(f, e.live[q.ID], row, pos)
				}
				if it.Sample && pos >= it.From+it.Count-1 {
					e.want(f, it, e.live[q.ID], row)
				}
			}
		}
	}
}

// tokenAt is a token of a sequence or, behind them, of its drafts; 0: it is not known.
func tokenAt(q *sched.Seq, pos int) int32 {
	if pos < len(q.Tokens) {
		return q.Tokens[pos]
	}
	if pos -= len(q.Tokens); pos < len(q.Drafts) {
		return q.Drafts[pos]
	}
	return 0
}

// want adds a row of logits for q's next token, or says which row of the step is the one
// for the token behind one of its drafts: the item's rows come in order, if others' may
// come between those that attend to all of their context and those that do not.
func (e *Engine) want(f *flight, it sched.Item, q *sequence, row int32) {
	pos := int(f.Batch.Pos[row]) - len(q.Tokens) + 1
	if pos > 0 {
		i := slices.IndexFunc(f.wanted, func(w wanted) bool { return w.sequence == q && w.what == next })
		f.Batch.Logits[int(f.wanted[i].first)+pos] = row
		return
	}
	at := len(q.Tokens)
	w := wanted{sequence: q, at: at, what: next, first: int32(len(f.Batch.Logits)), tip: -1,
		drafts: it.Drafts, sure: it.Drafts}
	if at >= q.Max {
		w.what = ending
		e.addRow(f, row, kernels.Greedy(), -1)
		f.wanted = append(f.wanted, w)
		return
	}
	if it.Draft {
		w.tip = 0
	}
	f.wanted = append(f.wanted, w)
	known, think, fed := q.Tokens, q.think, false
	for i := range it.Drafts + 1 {
		if i > 0 {
			q.Tokens = append(q.Tokens, q.Drafts[i-1])
			q.think.took(q.Tokens)
		}
		p, from := e.steer(f, q, i)
		e.addRow(f, row, p, from)
		fed = from >= 0
	}
	q.Tokens, q.think = known, think
	if q.guide != nil {
		e.masks(f, &f.wanted[len(f.wanted)-1], !fed)
	}
}

// steer is how q's next token is chosen, and the row of the step before that the token in
// front of it comes from: where steps are launched ahead it may still be on its way, and
// the ranks have it. -1: it is known. The last so many tokens are drafts.
func (e *Engine) steer(f *flight, q *sequence, drafts int) (p kernels.SampleParams, from int32) {
	p, from = q.params(), -1
	if q.step == f.Number-1 && e.ring.Len() > 0 {
		from = q.row
	}
	if q.permitted != nil {
		p.Allowed = e.model.AllowedRow(q.Seat)
	}
	n := len(f.Batch.Entries)
	var biases, assumed int
	f.Batch.Entries, biases, assumed = q.entries(f.Batch.Entries, drafts)
	p.Entries, p.Biases, p.Labels, p.Assumed = int32(n), int32(biases), int32(len(q.labels)), int32(assumed)
	p.Forced = q.think.force(len(q.Tokens))
	return p, from
}

// wantPrompt adds a row of logits for the prompt's next token, if it was not wanted yet.
func (e *Engine) wantPrompt(f *flight, q *sequence, row int32, pos int) {
	if pos+1 != q.scored || q.scored >= q.Prompt {
		return
	}
	p := kernels.Greedy()
	p.Logprobs, p.Forced = int32(q.sampling.PromptLogprobs)-1, q.Tokens[q.scored]
	f.wanted = append(f.wanted, wanted{sequence: q, at: q.scored, what: prompt,
		first: int32(len(f.Batch.Logits)), tip: -1})
	e.addRow(f, row, p, -1)
	q.scored++
}

// addRow adds a row of logits, which goes on from a row of the step before or from none.
func (e *Engine) addRow(f *flight, row int32, p kernels.SampleParams, from int32) {
	f.Batch.Logits = append(f.Batch.Logits, row)
	f.Batch.Params = append(f.Batch.Params, p)
	if e.o.Ahead > 1 && f.drafts == 0 {
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
		e.live[s.ID].told = untold
	}
	for _, q := range f.wanted {
		if q.what != next {
			continue
		}
		if err := e.uploadSteering(q.sequence, len(f.Batch.From) > 0 && f.Batch.From[q.first] >= 0); err != nil {
			return err
		}
	}
	return e.model.Upload(&f.Batch)
}

// known fills in the tokens that were not known when the step was launched, and
// returns what it was timed at without the call that fed them.
func (f *flight) known(t kernels.Trace) kernels.Trace {
	for i := range f.wanted {
		if q := &f.wanted[i]; len(f.Batch.From) > 0 && f.Batch.From[q.first] >= 0 {
			f.Batch.Tokens[f.Batch.Logits[q.first]], f.Batch.Params[q.first].Last = q.Tokens[q.at-1], q.Tokens[q.at-1]
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
		q := &f.wanted[i]
		if q.ended { // by a token that was not known yet when this row was launched
			continue
		}
		if q.drafts > 0 {
			f.verified++
		}
		right := 0
		for ; e.give(f, q, right) && right < q.sure; right++ {
			if s := &f.Sampled[int(q.first)+right]; s.Token != f.Batch.Tokens[f.Batch.Logits[int(q.first)+right+1]] {
				break
			}
			q.Tokens = append(q.Tokens, 0)
		}
		f.accepted += right
		if f.drafts > 0 && !q.ended && q.what == next {
			e.sched.Accept(&q.Seq, right)
		}
		if q.what == next && !q.ended {
			e.draft(f, q)
		}
	}
	e.sift(f)
}

// labels returns the n that stand behind so many alternatives; nil for 0.
func labels(s *kernels.Sampled, behind, n int) []Logprob {
	var l []Logprob
	for i := behind; i < behind+n; i++ {
		l = append(l, Logprob{s.IDs[i], s.Logps[i]})
	}
	return l
}

// give hands out the token that a row of logits gave, the first of its sequence or one
// behind drafts that were right, and reports whether the sequence goes on.
func (e *Engine) give(f *flight, q *wanted, row int) bool {
	s, at := &f.Sampled[int(q.first)+row], q.at+row
	t := Token{ID: q.ID, Token: s.Token, Prompt: q.what == prompt, Accepted: row > 0}
	if row == 0 {
		t.Drafted = q.drafts
	}
	switch wanted := q.sampling.Logprobs; {
	case q.lost != nil || s.Token < 0:
		t.Token, t.Reason, t.Err = -1, Failed, q.lost
	case q.what == ending:
		t.Token, t.Reason = -1, Length
	case q.what == prompt:
		t.Logprob, t.Top = s.Logprob, top(s, q.sampling.PromptLogprobs-1)
	default:
		t.Reason = q.ends(s.Token, at, e.ends)
		if wanted > 0 || len(q.labels) > 0 {
			n := max(0, wanted-1)
			t.Logprob, t.Top, t.Labels = s.Logprob, top(s, n), labels(s, n, len(q.labels))
		}
		if q.guide != nil {
			q.guide.Add(s.Token)
		}
		q.set(at, s.Token)
	}
	if t.Reason != Going {
		e.finish(q.sequence)
	}
	e.tokens = append(e.tokens, t)
	return t.Reason == Going
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

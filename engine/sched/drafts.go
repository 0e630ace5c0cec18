package sched

// Proposal says how steps take drafts: tokens that may follow a sequence's. They have
// rows in the step that computes the sequence's last token, so that one step gives
// several tokens where they are right. What was written for those that are wrong is
// written again by the rows that take their places.
type Proposal struct {
	Most  int  // drafts of a sequence in a step; 0: there are none
	Layer bool // the step's rows go through the prediction layer too, which makes drafts for the next
}

// Propose sets how the steps that Next lays out from here on take drafts. With Layer, a
// sequence whose tokens have not all been through the prediction layer has them computed
// again, from the first that lacks its entries; those of the other layers stay the same.
func (s *Scheduler) Propose(p Proposal) {
	if s.propose = p; p.Layer && s.pages.ready == nil {
		s.pages.ready = make([]uint16, s.o.Pages)
	}
}

// Behind is how many tokens of the sequences that run are in the caches, but not in those
// of the prediction layer.
func (s *Scheduler) Behind() (n int) {
	for _, q := range s.running {
		n += q.Cached - q.Ready
	}
	return n
}

// from is the first of a sequence's tokens that has to be computed.
func (s *Scheduler) from(q *Seq) int {
	if s.propose.Layer {
		return min(q.Cached, q.Ready)
	}
	return q.Cached
}

// speculate adds drafts to the batch's last item, if a step computes its sequence's last
// token: as many as rows, pages and the sequence's end allow. Nobody gives pages back for
// them. It returns how many.
func (s *Scheduler) speculate(b *Batch, rows int) int {
	it := &b.Items[len(b.Items)-1]
	if s.propose.Most == 0 || !it.Sample {
		return 0
	}
	q := it.Seq
	// The last token that there can be is sampled by the row of the one before it.
	n := max(0, min(len(q.Drafts), s.propose.Most, rows, s.o.Drafts-b.Drafts, s.spare, q.Max-1-len(q.Tokens)))
	layer := 0
	if s.propose.Layer && len(q.Tokens)+1 < q.Max {
		layer = s.propose.Most // the layer goes that far from where the step comes to
	}
	for end := len(q.Tokens) + n + layer; n+layer > 0; end = len(q.Tokens) + n + layer {
		if end <= s.o.Context && s.room(b, q, end) {
			break
		}
		if layer > 0 {
			layer = 0
		} else {
			n--
		}
	}
	it.Drafts, it.Draft = n, layer > 0
	b.Tokens += n
	b.Drafts += n
	s.spare -= n
	return n
}

// room gives a sequence the pages of so many tokens, if they are free.
func (s *Scheduler) room(b *Batch, q *Seq, tokens int) bool {
	need := pagesFor(tokens, s.o.PageTokens)
	if need-len(q.Pages) > len(s.pages.free) {
		return false
	}
	s.extend(b, q, need)
	return true
}

// Accept says that the first n drafts of a sequence's item were right: their tokens follow
// the one that was due, and have their entries.
func (s *Scheduler) Accept(q *Seq, n int) {
	if q.Seat < 0 {
		return
	}
	q.Cached += n
	if s.propose.Layer {
		q.Ready += n
	}
}

// predicted says that the tokens [from, to) of a sequence went through the prediction layer.
func (s *Scheduler) predicted(q *Seq, from, to int) {
	if q.Seat < 0 {
		return
	}
	q.Ready = to
	for size := s.o.PageTokens; from < to; {
		page := q.Pages[from/size]
		start := from / size * size
		if end := min(to, start+size); int(s.pages.ready[page]) >= from-start {
			s.pages.ready[page] = max(s.pages.ready[page], uint16(end-start))
		}
		from = start + size
	}
}

// readyOf is how many tokens, from the first page's on, have entries of the prediction layer.
func (p *pool) readyOf(pages []int32, size int) (n int) {
	if p.ready == nil {
		return 0
	}
	for _, page := range pages {
		n += int(p.ready[page])
		if int(p.ready[page]) < size {
			break
		}
	}
	return n
}

// copied says that a page's entries become another's, of which the first so many tokens
// count, and returns how many of them have entries of the prediction layer.
func (p *pool) copied(from, to int32, tokens int) int {
	if p.ready == nil {
		return 0
	}
	p.ready[to] = min(p.ready[from], uint16(tokens))
	return int(p.ready[to])
}

package sched

import (
	"cmp"
	"slices"
)

// lengths is what the answers of sequences that ended tell of those to come. Where the
// prompts of some begin alike, as a task's do, the answers of those count.
type lengths struct {
	all   mean
	since int // ended since the queue was sorted
}

// mean is that of the tokens of some answers.
type mean struct{ answers, tokens int }

// Few answers tell nothing; the queue is sorted anew when there are so many more.
const (
	leastAnswers = 8
	resort       = 256
)

// guess says how long a sequence's answer will be: as long as it may be where it ends
// by nothing else or nothing is known.
func (l *lengths) guess(q *Seq) {
	if q.expect = q.Max - q.Prompt; q.Exact {
		return
	}
	if m := l.of(q); m.answers >= leastAnswers {
		q.expect = min(q.expect, max(1, m.tokens/m.answers))
	}
}

// of is the mean that tells of a sequence.
func (l *lengths) of(q *Seq) mean {
	for n := q.leaf; n != nil; n = n.up {
		if n.ended.answers >= leastAnswers && n.up != nil {
			return n.ended
		}
	}
	return l.all
}

// ended learns of a sequence that ran, and reports whether it is time to guess anew.
func (l *lengths) ended(q *Seq) bool {
	if q.Exact {
		return false
	}
	n := len(q.Tokens) - q.Prompt
	l.all.add(n)
	for k := q.leaf; k != nil; k = k.up {
		k.ended.add(n)
	}
	l.since++
	if l.since < resort && l.all.answers != leastAnswers {
		return false
	}
	l.since = 0
	return true
}

func (m *mean) add(tokens int) { m.answers, m.tokens = m.answers+1, m.tokens+tokens }

// lasting is a sequence as lasts sees it: how many tokens it will still add, and the
// pages that are free when it has.
type lasting struct{ left, own int }

// lasts reports whether the pages will do for all that runs and for a sequence that
// takes some now, if none adds more tokens than is known of it, and a page each.
func (s *Scheduler) lasts(q *Seq, need int) bool {
	s.future = append(s.future[:0], lasting{s.left(q), need})
	for _, r := range s.running {
		s.future = append(s.future, lasting{s.left(r), len(r.Pages) - r.others})
	}
	slices.SortFunc(s.future, func(a, b lasting) int { return cmp.Compare(a.left, b.left) })
	used := s.pages.used() + need
	for i, f := range s.future { // when it ends
		n := len(s.future) - i
		if used+n*f.left/s.o.PageTokens+n-1 > s.o.Pages {
			return false
		}
		used -= f.own
	}
	return true
}

// left is how many tokens a sequence will still add. Of one of which nothing is known
// that is not to be planned with.
func (s *Scheduler) left(q *Seq) int {
	if !q.Exact && s.lengths.all.answers < leastAnswers {
		return 0
	}
	return max(0, q.Prompt+q.expect-len(q.Tokens))
}

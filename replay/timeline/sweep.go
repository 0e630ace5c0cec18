package timeline

import (
	"cmp"
	"slices"
)

// Piece is a span for a sweep. Key is what it counts for: a class, a kernel, a
// layer; a small number, 0 or more.
type Piece struct {
	Start, End int64
	Key        int32
}

// None and Several stand for a key where no single one runs.
const (
	None    int32 = -1
	Several int32 = -2
)

// Sweeper splits time by what runs. Its zero value is ready; it keeps its memory
// from one sweep to the next.
type Sweeper struct {
	ends   []ending // a heap by end
	counts []int32  // running pieces of each key
	keys   int32    // keys with a running piece
	sum    int32    // XOR of those keys: the key itself when there is one
}

type ending struct {
	at  int64
	key int32
}

// Sweep sorts pieces by start and calls emit for each stretch between the first
// start and the last end in which what runs does not change: with the one key
// that runs, with Several, or with None. Pieces of one key may overlap each
// other, on one lane or on many. Stretches are in order, touch each other and
// are not empty; pieces without length are passed over.
func (s *Sweeper) Sweep(pieces []Piece, emit func(start, end int64, key int32)) {
	byStart := func(a, b Piece) int { return cmp.Compare(a.Start, b.Start) }
	if !slices.IsSortedFunc(pieces, byStart) {
		slices.SortStableFunc(pieces, byStart)
	}
	s.ends, s.keys, s.sum = s.ends[:0], 0, 0
	var at int64
	begun := false
	for _, p := range pieces {
		if p.End <= p.Start {
			continue
		}
		if !begun {
			at, begun = p.Start, true
		}
		at = s.retire(at, p.Start, emit)
		if p.Start > at {
			emit(at, p.Start, s.running())
			at = p.Start
		}
		s.begin(p)
	}
	if len(s.ends) > 0 {
		last := slices.MaxFunc(s.ends, func(a, b ending) int { return cmp.Compare(a.at, b.at) })
		s.retire(at, last.at, emit)
	}
}

// retire ends what ends by the time until, and returns the time reached.
func (s *Sweeper) retire(at, until int64, emit func(start, end int64, key int32)) int64 {
	for len(s.ends) > 0 && s.ends[0].at <= until {
		e := s.pop()
		if e.at > at {
			emit(at, e.at, s.running())
			at = e.at
		}
		if s.counts[e.key]--; s.counts[e.key] == 0 {
			s.keys--
			s.sum ^= e.key
		}
	}
	return at
}

func (s *Sweeper) running() int32 {
	switch s.keys {
	case 0:
		return None
	case 1:
		return s.sum
	}
	return Several
}

func (s *Sweeper) begin(p Piece) {
	if int(p.Key) >= len(s.counts) {
		s.counts = append(s.counts, make([]int32, int(p.Key)+1-len(s.counts))...)
	}
	if s.counts[p.Key]++; s.counts[p.Key] == 1 {
		s.keys++
		s.sum ^= p.Key
	}
	s.ends = append(s.ends, ending{p.End, p.Key})
	for i := len(s.ends) - 1; i > 0 && s.ends[i].at < s.ends[(i-1)/2].at; i = (i - 1) / 2 {
		s.ends[i], s.ends[(i-1)/2] = s.ends[(i-1)/2], s.ends[i]
	}
}

func (s *Sweeper) pop() ending {
	top, n := s.ends[0], len(s.ends)-1
	s.ends[0] = s.ends[n]
	s.ends = s.ends[:n]
	for i := 0; ; {
		c := 2*i + 1
		if c >= n {
			return top
		}
		if c+1 < n && s.ends[c+1].at < s.ends[c].at {
			c++
		}
		if s.ends[i].at <= s.ends[c].at {
			return top
		}
		s.ends[i], s.ends[c] = s.ends[c], s.ends[i]
		i = c
	}
}

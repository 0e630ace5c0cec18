package pipeline

import (
	"math/rand/v2"
	"testing"

	"glmbatch/datasets/demo"
	"glmbatch/engine"
)

// stub is an engine without a model: a request's tokens are a hash of its seed
// and the position, and requests finish in an order of the stub's own.
type stub struct {
	vocab   int32
	length  int // most tokens of a response
	shuffle *rand.Rand
	seqs    []*stubSequence
	tokens  []engine.Token
	steps   int
	onStep  func(step int)
	seats   int // requests that run at once; 0: all
	added   int64
	ending  bool
}

type stubSequence struct {
	engine.Request
	made int
	want int
}

func (s *stub) Add(r engine.Request) error {
	h := mix(r.Sampling.Seed ^ uint64(len(r.Prompt)))
	want := 1 + int(h%uint64(s.length))
	if most := r.Sampling.MaxTokens; most > 0 {
		want = min(want, most)
	}
	s.seqs = append(s.seqs, &stubSequence{Request: r, want: want})
	s.added++
	return nil
}

func (s *stub) Idle() bool { return len(s.seqs) == 0 }

func (s *stub) Cancel(id int64) bool {
	for i, q := range s.seqs {
		if q.ID == id {
			s.seqs = append(s.seqs[:i], s.seqs[i+1:]...)
			return true
		}
	}
	return false
}

func (s *stub) Step() ([]engine.Token, error) {
	s.steps++
	if s.onStep != nil {
		s.onStep(s.steps)
	}
	if s.shuffle != nil {
		s.shuffle.Shuffle(len(s.seqs), func(i, k int) { s.seqs[i], s.seqs[k] = s.seqs[k], s.seqs[i] })
	}
	s.tokens = s.tokens[:0]
	live := s.seqs[:0]
	for i, q := range s.seqs {
		if s.shuffle != nil && i > len(s.seqs)/2 || s.seats > 0 && i >= s.seats {
			live = append(live, q)
			continue
		}
		t := engine.Token{ID: q.ID, Token: int32(mix(q.Sampling.Seed+uint64(q.made)) % uint64(s.vocab))}
		if q.Sampling.Logprobs > 0 {
			t.Logprob = -1
			t.Top = []engine.Logprob{{Token: t.Token, Logprob: -1}}
		}
		q.made++
		if q.made == q.want {
			t.Reason = engine.Length
		} else {
			live = append(live, q)
		}
		s.tokens = append(s.tokens, t)
	}
	clear(s.seqs[len(live):])
	s.seqs = live
	return s.tokens, nil
}

func (s *stub) Withdraw() (ids []int64) {
	for len(s.seqs) > 0 && s.seats > 0 && s.seqs[len(s.seqs)-1].made == 0 {
		last := len(s.seqs) - 1
		ids, s.seqs = append(ids, s.seqs[last].ID), s.seqs[:last]
	}
	return ids
}

func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func demoText(t testing.TB) Text {
	t.Helper()
	f := demo.Files()
	text, err := LoadText(f, TextOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

package sched

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// check fails when pages are lost, shared or missing, or an older sequence
// waits while a newer one runs.
func check(t interface{ Fatalf(string, ...any) }, s *Scheduler) {
	owner := map[int32]int64{}
	for _, p := range s.pages.free {
		if _, twice := owner[p]; twice {
			t.Fatalf("page %d is free twice", p)
		}
		owner[p] = -1
	}
	seats := map[int]bool{}
	for _, q := range s.running {
		for _, p := range q.Pages {
			if _, taken := owner[p]; taken {
				t.Fatalf("page %d of sequence %d is taken", p, q.ID)
			}
			owner[p] = q.ID
		}
		if seats[q.Seat] || q.Seat < 0 || q.Seat >= s.o.MaxSeqs {
			t.Fatalf("seat %d of sequence %d", q.Seat, q.ID)
		}
		seats[q.Seat] = true
		if len(q.Pages)*s.o.PageTokens < q.Cached {
			t.Fatalf("sequence %d has %d pages for %d tokens", q.ID, len(q.Pages), q.Cached)
		}
	}
	if len(owner) != s.o.Pages {
		t.Fatalf("%d pages of %d", len(owner), s.o.Pages)
	}
	all := slices.Concat(s.running, s.waiting)
	if !slices.IsSortedFunc(all, func(a, b *Seq) int { return int(a.order - b.order) }) {
		t.Fatalf("a newer sequence runs before an older one")
	}
}

func TestEverythingFinishes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := Options{
			MaxBatchTokens: rapid.IntRange(1, 40).Draw(t, "batch"),
			MaxSeqs:        rapid.IntRange(1, 12).Draw(t, "seqs"),
			PageTokens:     rapid.SampledFrom([]int{1, 2, 4, 8}).Draw(t, "page"),
			Context:        rapid.IntRange(4, 60).Draw(t, "context"),
		}
		o.Pages = rapid.IntRange(1, 80).Draw(t, "pages")
		s, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		type plan struct {
			at, prompt, output int
			cancel             bool
		}
		var plans []plan
		for range rapid.IntRange(1, 25).Draw(t, "requests") {
			plans = append(plans, plan{
				at: rapid.IntRange(0, 30).Draw(t, "at"), prompt: rapid.IntRange(1, 50).Draw(t, "prompt"),
				output: rapid.IntRange(1, 20).Draw(t, "output"), cancel: rapid.IntRange(0, 9).Draw(t, "cancel") == 0,
			})
		}
		want, done := 0, map[int64]int{}
		var finished []int64
		for step := 0; step < 20000; step++ {
			for i, p := range plans {
				if p.at != step {
					continue
				}
				q := &Seq{ID: int64(i), Tokens: make([]int32, p.prompt), Max: p.prompt + p.output}
				fits := min(p.prompt+p.output, o.Context)-1 <= o.Pages*o.PageTokens && p.prompt < o.Context
				if err := s.Add(q); (err == nil) != fits {
					t.Fatalf("Add of %+v: %v", p, err)
				} else if err != nil && !errors.Is(err, ErrTooLong) {
					t.Fatal(err)
				} else if err == nil {
					want++
				}
			}
			b := s.Next()
			check(t, s)
			rows := 0
			for _, it := range b.Items {
				rows += it.Count
				if it.Count < 1 || it.From != it.Seq.Cached || it.From+it.Count > len(it.Seq.Tokens) ||
					it.Sample != (it.From+it.Count == len(it.Seq.Tokens)) ||
					len(it.Seq.Pages)*o.PageTokens < it.From+it.Count {
					t.Fatalf("bad item %+v of %+v", it, *it.Seq)
				}
			}
			if rows != b.Tokens || rows > o.MaxBatchTokens {
				t.Fatalf("%d rows, Tokens %d, budget %d", rows, b.Tokens, o.MaxBatchTokens)
			}
			if rows == 0 {
				if !s.Idle() {
					t.Fatalf("nothing to compute, %d run and %d wait", s.Running(), s.Waiting())
				}
				if step > 30 {
					break
				}
				continue
			}
			if b.Items[0].Seq != s.running[0] {
				t.Fatalf("the oldest sequence does not go on")
			}
			s.Commit(b)
			for _, it := range b.Items {
				q := it.Seq
				if !it.Sample {
					continue
				}
				q.Tokens = append(q.Tokens, 7)
				if p := plans[q.ID]; len(q.Tokens) == q.Max || p.cancel && len(q.Tokens) > p.prompt+p.output/2 {
					s.Finish(q)
					done[q.ID]++
					finished = append(finished, q.ID)
				}
			}
			check(t, s)
		}
		if len(done) != want || len(finished) != want || s.PagesUsed() != 0 || !s.Idle() {
			t.Fatalf("%d of %d finished, %d pages used", len(done), want, s.PagesUsed())
		}
	})
}

func TestKinds(t *testing.T) {
	s, err := New(Options{MaxBatchTokens: 8, MaxSeqs: 4, Context: 64})
	if err != nil {
		t.Fatal(err)
	}
	add := func(id int64, n int) {
		if err := s.Add(&Seq{ID: id, Tokens: make([]int32, n), Max: n + 3}); err != nil {
			t.Fatal(err)
		}
	}
	next := func(kind Kind, counts ...int) {
		t.Helper()
		b := s.Next()
		var got []int
		for _, it := range b.Items {
			got = append(got, it.Count)
			if it.Sample {
				defer func() { it.Seq.Tokens = append(it.Seq.Tokens, 1) }()
			}
		}
		if b.Kind != kind || !slices.Equal(got, counts) {
			t.Fatalf("%s %v, want %s %v", b.Kind, got, kind, counts)
		}
		s.Commit(b)
	}
	add(1, 5)
	next(Prefill, 5)
	next(Decode, 1)
	add(2, 12)
	next(Mixed, 1, 7)
	next(Mixed, 1, 5)
	next(Decode, 1, 1)
}

func TestTooLong(t *testing.T) {
	s, err := New(Options{Pages: 2, Context: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		tokens, max int
		ok          bool
	}{{1, 129, true}, {1, 130, false}, {128, 0, false}, {1000, 0, false}, {10, 0, false}, {10, 10, false}, {128, 129, true}} {
		err := s.Add(&Seq{Tokens: make([]int32, c.tokens), Max: c.max})
		if (err == nil) != c.ok || err != nil && !errors.Is(err, ErrTooLong) {
			t.Errorf("%d tokens of at most %d: %v", c.tokens, c.max, err)
		}
	}
}

func TestValidateReportsAll(t *testing.T) {
	_, err := New(Options{MaxBatchTokens: -1, Pages: -2})
	if err == nil || len(err.Error()) < 60 {
		t.Fatalf("%v", err)
	}
}

func BenchmarkNext(b *testing.B) {
	s, err := New(Options{MaxSeqs: 64})
	if err != nil {
		b.Fatal(err)
	}
	for i := range 64 {
		if err := s.Add(&Seq{ID: int64(i), Tokens: make([]int32, 8)}); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		s.Next()
	}
}

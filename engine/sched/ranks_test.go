package sched

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Ranks with sequences of their own finish everything, each on its rank with its pages, and in
// few steps more than a perfect balance would take.
func TestRanksFinishEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 5).Draw(t, "ranks")
		o := Options{
			MaxBatchTokens: rapid.IntRange(1, 20).Draw(t, "rows"),
			MaxSeqs:        rapid.IntRange(1, 6).Draw(t, "seqs"),
			PageTokens:     4,
			Context:        40,
			Pages:          rapid.IntRange(12, 30).Draw(t, "pages"),
			NoSharing:      rapid.Bool().Draw(t, "apart"),
		}
		r, err := NewRanks(n, min(o.MaxSeqs, o.MaxBatchTokens), o)
		if err != nil {
			t.Fatal(err)
		}
		left := rapid.IntRange(1, 40).Draw(t, "sequences")
		var ids int64
		caches := make([]entries, n)
		for i := range caches {
			caches[i] = entries{o.PageTokens, map[int32]uint64{}}
		}
		for left > 0 || !r.Idle() {
			for left > 0 && (r.Idle() || rapid.Bool().Draw(t, "add")) {
				group, same := rapid.Int32Range(0, 2).Draw(t, "group"), rapid.IntRange(1, 15).Draw(t, "same")
				prompt := slices.Repeat([]int32{group}, same)
				prompt = append(prompt, rapid.SliceOfN(rapid.Int32Range(0, 2), 1, 9).Draw(t, "prompt")...)
				ids++
				answer := rapid.IntRange(1, 10).Draw(t, "answer")
				if err := r.Add(&Seq{ID: ids, Tokens: prompt, Max: len(prompt) + answer}); err != nil {
					t.Fatal(err)
				}
				left--
			}
			b := r.Next()
			if len(b.Items) == 0 {
				t.Fatalf("nothing is due, with %d sequences", r.Running()+r.Waiting())
			}
			last := 0
			for _, it := range b.Items {
				if it.Seq.Rank < last {
					t.Fatalf("the ranks' sequences are mixed")
				}
				last = it.Seq.Rank
			}
			for i, s := range r.of {
				check(t, s)
				caches[i].step(t, &s.batch)
			}
			r.Commit(b)
			for _, it := range b.Items {
				if q := it.Seq; it.Sample {
					if q.Tokens = append(q.Tokens, 1); len(q.Tokens) >= q.Max {
						r.Finish(q)
					}
				}
			}
			work := make([]int, n)
			for i, s := range r.of {
				for _, q := range append(slices.Clone(s.running), s.waiting...) {
					work[i] += q.work
				}
			}
			if !slices.Equal(work, r.work) {
				t.Fatalf("the ranks have %v to do, they say %v", work, r.work)
			}
		}
	})
}

// What the ranks do is about the same, of a job of answers whose lengths nobody knows; and
// rows that share a document are together, if there are many documents.
func TestRanksAreBalanced(t *testing.T) {
	const n, rows = 8, 2000
	rng := rand.New(rand.NewPCG(1, 2))
	r, err := NewRanks(n, 32, Options{MaxBatchTokens: 256, MaxSeqs: 32, Context: 2048, Pages: 2000})
	if err != nil {
		t.Fatal(err)
	}
	document := func(i int) []int32 {
		tokens := make([]int32, 640)
		for j := range tokens {
			tokens[j] = int32(i*7919 + j)
		}
		return tokens
	}
	end := map[*Seq]int{}
	prompts := 0
	for i := range rows {
		q := &Seq{ID: int64(i), Tokens: append(document(i/5), int32(i), 2, 3), Max: 1600}
		prompts += len(q.Tokens)
		end[q] = len(q.Tokens) + 1 + int(rng.ExpFloat64()*60)
		if err := r.Add(q); err != nil {
			t.Fatal(err)
		}
	}
	steps, computed := 0, make([]int, n)
	seats, tokens := 0, 0
	for ; !r.Idle(); steps++ {
		b := r.Next()
		if r.Waiting() > 0 {
			seats += len(b.Items)
			tokens += n * 32
		}
		r.Commit(b)
		for _, it := range b.Items {
			computed[it.Seq.Rank] += it.Count
			if it.Sample {
				if it.Seq.Tokens = append(it.Seq.Tokens, 1); len(it.Seq.Tokens) >= min(end[it.Seq], it.Seq.Max) {
					r.Finish(it.Seq)
				}
			}
		}
	}
	sum := 0
	for _, c := range computed {
		sum += c
	}
	answers := 0
	for q, e := range end {
		answers += min(e, q.Max) - q.Prompt
	}
	saved, most := prompts-(sum-answers), prompts*4/5*640/643
	t.Logf("%d steps, tokens by rank %v, %d of %d prompt tokens saved that could be, %.1f %% of the seats in use while some wait",
		steps, computed, saved, most, 100*float64(seats)/float64(max(1, tokens)))
	if slices.Max(computed)*n > sum*11/10 {
		t.Errorf("a rank has more than 1.1 times its part: %v", computed)
	}
	if saved < most*95/100 {
		t.Errorf("%d prompt tokens were saved of %d that rows share", saved, most)
	}
}

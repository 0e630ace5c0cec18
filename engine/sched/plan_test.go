package sched

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// played is what a job of sequences was.
type played struct {
	steps, computed, prompts, preempted, shared int
	rows, decoded                               int // of the steps until 95 % of the answers' tokens are there
}

// play runs sequences, whose answers have Max tokens or, where Exact is not set, so many
// as answer says. Of those that wait no more than window are known.
func play(t *testing.T, o Options, window int, seqs []*Seq, answer func(*Seq) int) played {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	var p played
	total, done := 0, 0
	for _, q := range seqs {
		total += answer(q)
	}
	for next := 0; next < len(seqs) || !s.Idle(); {
		for ; next < len(seqs) && s.Waiting() < window; next++ {
			p.prompts += len(seqs[next].Tokens)
			if err := s.Add(seqs[next]); err != nil {
				t.Fatal(err)
			}
		}
		b := s.Next()
		s.Commit(b)
		if b.Tokens == 0 {
			t.Fatalf("step %d computes nothing, %d sequences wait", p.steps, s.Waiting())
		}
		p.steps++
		p.computed += b.Tokens
		p.preempted += b.Preempted
		p.shared += b.Shared
		if done*100 < total*95 {
			p.rows += len(b.Items)
			p.decoded++
		}
		for _, it := range b.Items {
			if q := it.Seq; it.Sample {
				done++
				q.Tokens = append(q.Tokens, -int32(len(q.Tokens)))
				if len(q.Tokens) == q.Prompt+answer(q) {
					s.Finish(q)
				}
			}
		}
	}
	if s.PagesUsed() != 0 || len(s.tree.held) != 0 || s.tree.root.live != 0 {
		t.Fatalf("%d pages used, %d kept, at the end", s.PagesUsed(), len(s.tree.held))
	}
	return p
}

func exactly(q *Seq) int { return q.Max - q.Prompt }

// A job whose answers have from 16 to 4,096 tokens, few of them long, keeps its seats
// taken until nearly all is done: the longest begin first, wherever they are.
func TestTheTailIsShort(t *testing.T) {
	pareto := func(r *rand.Rand) float64 { return 16 / math.Pow(1-r.Float64()*(1-1./16), 2) }
	loguniform := func(r *rand.Rand) float64 { return 16 * math.Pow(256, r.Float64()) }
	for _, c := range []struct {
		name         string
		length       func(*rand.Rand) float64
		seats, pages int
	}{
		{"half the rows below 64", pareto, 32, 32 * 80},
		{"half the rows below 256", loguniform, 64, 64 * 80},
		{"a cache of half as much", loguniform, 64, 64 * 30},
	} {
		r := rand.New(rand.NewPCG(5, 6))
		var seqs []*Seq
		for i := range 1000 {
			n := min(4096, int(c.length(r)))
			if i == 990 { // near the end of the input
				n = 4096
			}
			q := &Seq{ID: int64(i), Tokens: make([]int32, 20+r.IntN(200)), Exact: true}
			for j := range q.Tokens {
				q.Tokens[j] = r.Int32()
			}
			q.Max = len(q.Tokens) + n
			seqs = append(seqs, q)
		}
		o := Options{MaxBatchTokens: 2048, MaxSeqs: c.seats, Pages: c.pages, Context: 8192}
		p := play(t, o, 1<<14, seqs, exactly)
		occupancy := float64(p.rows) / float64(p.decoded*o.MaxSeqs)
		t.Logf("%s: %d steps, %.1f %% of the seats taken, %d preempted", c.name, p.steps, 100*occupancy, p.preempted)
		if occupancy < .85 && c.pages == 80*c.seats || p.preempted > 0 {
			t.Errorf("%s: %.1f %% of the seats taken, %d preempted", c.name, 100*occupancy, p.preempted)
		}
	}
}

// groups are sequences whose prompts begin alike in groups and in groups of these, in
// any order.
func groups(r *rand.Rand, outer, inner, each int) (seqs []*Seq, least int) {
	text := func(n int) []int32 {
		x := make([]int32, n)
		for i := range x {
			x[i] = r.Int32()
		}
		return x
	}
	for range outer {
		system := text(200 + r.IntN(600))
		least += len(system)
		for range inner {
			document := text(100 + r.IntN(1500))
			least += len(document)
			for range each {
				question := text(1 + r.IntN(60))
				least += len(question)
				q := &Seq{Tokens: slices.Concat(system, document, question), Exact: true}
				q.Max = len(q.Tokens) + 16 + r.IntN(100)
				seqs = append(seqs, q)
			}
		}
	}
	r.Shuffle(len(seqs), func(i, j int) { seqs[i], seqs[j] = seqs[j], seqs[i] })
	for i, q := range seqs {
		q.ID = int64(i)
	}
	return seqs, least
}

// Of the tokens that need not be computed again at least 95 % are not, with 500 groups
// in 50, in a cache that holds a few of them.
func TestMixedPrefixesAreComputedOnce(t *testing.T) {
	seqs, least := groups(rand.New(rand.NewPCG(1, 2)), 50, 10, 8)
	o := Options{MaxBatchTokens: 2048, MaxSeqs: 64, Pages: 1024, Context: 4096}
	p := play(t, o, 1<<14, seqs, exactly)
	counter, counted := NewCounter(1<<14, 64), 0
	for _, q := range seqs {
		counted += counter.Add(q.Tokens[:q.Prompt])
	}
	if counted < p.prompts-least-4*len(seqs) || counted > p.prompts-least {
		t.Errorf("%d tokens counted as shared, %d are", counted, p.prompts-least)
	}
	saved := float64(p.shared) / float64(p.prompts-least)
	t.Logf("%d prompt tokens, %d differ: %.1f %% of the others saved, %d steps, %d preempted", p.prompts, least,
		100*saved, p.steps, p.preempted)
	if saved < .95 {
		t.Errorf("%.1f %% of what can be saved is", 100*saved)
	}
}

// A counter forgets what it knew before so many prompts.
func TestCounterForgets(t *testing.T) {
	c := NewCounter(3, 4)
	prompt := func(first int32) []int32 { return []int32{first, 2, 3, 4, 5, 6, 7, 8, 9} }
	for i, want := range []int{0, 8, 0, 8, 0, 0, 0, 0} {
		first := []int32{1, 1, 2, 1, 3, 4, 5, 2}[i]
		if got := c.Add(prompt(first)); got != want {
			t.Errorf("prompt %d: %d shared, want %d", i, got, want)
		}
	}
	if c.count != 3 || c.tree.root.live != 3 || c.tokens != 27 {
		t.Errorf("%d known, %d in the tree, %d tokens", c.count, c.tree.root.live, c.tokens)
	}
}

// Answers whose lengths are not known are learnt by their prefixes: where pages are few,
// sequences are not begun that would be sent back.
func TestLengthsAreLearnt(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	seqs, _ := groups(r, 4, 1, 200)
	length := map[int32]int{}
	for _, q := range seqs {
		q.Exact, q.Max = false, 4096
		if length[q.Tokens[0]] == 0 {
			length[q.Tokens[0]] = 20 << (2 * len(length)) // 20 to 1,280
		}
	}
	p := play(t, Options{MaxBatchTokens: 2048, MaxSeqs: 64, Pages: 512, Context: 8192}, 1<<14, seqs, func(q *Seq) int {
		return length[q.Tokens[0]]
	})
	t.Logf("%+v", p)
	if p.preempted > 100 {
		t.Errorf("%d of %d sequences were sent back", p.preempted, len(seqs))
	}
}

package sched

import (
	"errors"
	"glmbatch/kernels"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// check fails when pages are lost or have other owners than they say, or the tree is
// not that of the sequences.
func check(t interface{ Fatalf(string, ...any) }, s *Scheduler) {
	refs, kept := make([]int32, s.o.Pages), make([]int32, s.o.Pages)
	seats := map[int]bool{}
	for _, q := range s.running {
		for _, p := range q.Pages {
			refs[p]++
		}
		if seats[q.Seat] || q.Seat/s.o.MaxSeqs != q.Rank || q.Seat < 0 {
			t.Fatalf("seat %d of sequence %d", q.Seat, q.ID)
		}
		seats[q.Seat] = true
		if len(q.Pages)*s.o.PageTokens < q.Cached {
			t.Fatalf("sequence %d has %d pages for %d tokens", q.ID, len(q.Pages), q.Cached)
		}
	}
	for _, c := range s.sources {
		refs[c.page]++
	}
	live, nodes := 0, 0
	var walk func(n *node) (live, waiting int)
	walk = func(n *node) (live, waiting int) {
		nodes++
		for _, q := range n.seqs {
			live++
			if q.Seat < 0 {
				waiting++
			}
			if q.leaf != n || n.end != q.Prompt-1 || !slices.Equal(n.src, q.Tokens[:n.end]) && n.up != nil {
				t.Fatalf("sequence %d ends at the wrong node", q.ID)
			}
		}
		for i, k := range n.kids {
			if k.up != n || k.end <= n.end || len(k.src) != k.end || i > 0 && n.kids[i-1].first() >= k.first() ||
				n.up != nil && !slices.Equal(k.src[:n.end], n.src) {
				t.Fatalf("node up to %d below one up to %d", k.end, n.end)
			}
			l, w := walk(k)
			live, waiting = live+l, waiting+w
		}
		if live != n.live || waiting != n.waiting {
			t.Fatalf("%d sequences, %d wait, at a node that says %d and %d", live, waiting, n.live, n.waiting)
		}
		if n.up == nil {
			return live, waiting
		}
		if live == 0 || len(n.kids) == 1 && len(n.seqs) == 0 {
			t.Fatalf("a node of %d sequences and %d children", live, len(n.kids))
		}
		if n.ready < n.up.end || n.ready > n.end || len(n.pages) != n.ready/s.o.PageTokens-n.up.end/s.o.PageTokens ||
			n.tail >= 0 && n.waiting == 0 && s.pages.onlyKept(n.tail) {
			t.Fatalf("node from %d to %d, ready %d, %d pages, tail %d", n.up.end, n.end, n.ready, len(n.pages), n.tail)
		}
		if n.busy != nil && (n.busy.Seat < 0 || !slices.Contains(s.running, n.busy)) {
			t.Fatalf("nobody computes what node %d waits for", n.end)
		}
		keeps := n.pages
		if n.tail >= 0 {
			keeps = append(slices.Clone(keeps), n.tail)
		}
		for _, p := range keeps {
			refs[p]++
			kept[p]++
		}
		if (n.at >= 0) != (len(keeps) > 0) || n.at >= 0 && s.tree.held[n.at] != n {
			t.Fatalf("node up to %d keeps %d pages, place %d", n.end, len(keeps), n.at)
		}
		return live, waiting
	}
	live, _ = walk(&s.tree.root)
	if !s.o.NoSharing && live != len(s.running)+len(s.waiting) || nodes > 2*live+1 {
		t.Fatalf("the tree has %d sequences in %d nodes", live, nodes)
	}
	idle, free := 0, 0
	for p := range refs {
		if refs[p] == 0 {
			free++
		} else if refs[p] == kept[p] {
			idle++
		}
	}
	if !slices.Equal(refs, s.pages.refs) || !slices.Equal(kept, s.pages.kept) || idle != s.pages.idle ||
		free != len(s.pages.free) {
		t.Fatalf("owners %v, counted %v; idle %d, %d; free %d, %d", s.pages.refs, refs, s.pages.idle, idle,
			len(s.pages.free), free)
	}
	if !slices.IsSortedFunc(s.running, func(a, b *Seq) int { return int(a.turn - b.turn) }) {
		t.Fatalf("a newer sequence runs before an older one")
	}
	for i, q := range s.waiting {
		if q.place != i || i > 0 && before(q, s.waiting[(i-1)/2]) {
			t.Fatalf("the queue is not a heap")
		}
	}
}

// entries stands for the caches: of each slot, the tokens up to the one that was
// computed for it, hashed.
type entries struct {
	page  int
	slots map[int32]uint64
}

func prefixHash(tokens []int32) uint64 {
	h := uint64(14695981039346656037)
	for _, t := range tokens {
		h = (h ^ uint64(uint32(t))) * 1099511628211
	}
	return h
}

// step computes a batch: all rows write, and then each must find what it attends to.
func (e *entries) step(t interface{ Fatalf(string, ...any) }, b *Batch) {
	for _, c := range b.Copies {
		for i := range int32(e.page) {
			e.slots[c.To*int32(e.page)+i] = e.slots[c.From*int32(e.page)+i]
		}
	}
	slot := func(q *Seq, pos int) int32 { return q.Pages[pos/e.page]*int32(e.page) + int32(pos%e.page) }
	for _, it := range b.Items {
		for pos := it.From; pos < it.From+it.Count; pos++ {
			e.slots[slot(it.Seq, pos)] = prefixHash(it.Seq.Tokens[:pos+1])
		}
	}
	for _, it := range b.Items {
		for pos := range it.From + it.Count {
			if e.slots[slot(it.Seq, pos)] != prefixHash(it.Seq.Tokens[:pos+1]) {
				t.Fatalf("sequence %d attends to other tokens than its own at %d of %d", it.Seq.ID, pos,
					it.From+it.Count)
			}
		}
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
		o.NoSharing = rapid.IntRange(0, 4).Draw(t, "sharing") == 0
		s, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		s.copies = rapid.SampledFrom([]int{mostCopies, 1, 0}).Draw(t, "copies")
		type plan struct {
			at, output int
			prompt     []int32
			cancel     bool
		}
		var plans []plan
		for range rapid.IntRange(1, 25).Draw(t, "requests") {
			p := plan{at: rapid.IntRange(0, 30).Draw(t, "at"), output: rapid.IntRange(1, 20).Draw(t, "output"),
				cancel: rapid.IntRange(0, 9).Draw(t, "cancel") == 0}
			if len(plans) > 0 && rapid.IntRange(0, 2).Draw(t, "like") > 0 { // another, and its first tokens
				p.prompt = slices.Clone(plans[rapid.IntRange(0, len(plans)-1).Draw(t, "of")].prompt)
				p.prompt = p.prompt[:rapid.IntRange(1, len(p.prompt)).Draw(t, "same")]
			}
			for range rapid.IntRange(min(1, max(0, 1-len(p.prompt))), 50-len(p.prompt)).Draw(t, "more") {
				p.prompt = append(p.prompt, int32(rapid.IntRange(0, 2).Draw(t, "token")))
			}
			plans = append(plans, p)
		}
		caches := &entries{page: o.PageTokens, slots: map[int32]uint64{}}
		want, done := 0, map[int64]int{}
		var finished []int64
		for step := 0; step < 20000; step++ {
			for i, p := range plans {
				if p.at != step {
					continue
				}
				prompt := len(p.prompt)
				q := &Seq{ID: int64(i), Tokens: slices.Clip(p.prompt), Max: prompt + p.output}
				fits := min(prompt+p.output, o.Context)-1 <= o.Pages*o.PageTokens && prompt < o.Context
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
			caches.step(t, b)
			s.Commit(b)
			for _, it := range b.Items {
				q := it.Seq
				if !it.Sample {
					continue
				}
				q.Tokens = append(q.Tokens, int32(len(q.Tokens)*7)+int32(q.ID)*1000)
				if p := plans[q.ID]; len(q.Tokens) == q.Max || p.cancel && len(q.Tokens) > len(p.prompt)+p.output/2 {
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
		if err := s.Add(&Seq{ID: id, Tokens: slices.Repeat([]int32{int32(id)}, n), Max: n + 3}); err != nil {
			t.Fatal(err)
		}
	}
	next := func(kind string, counts ...int) {
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
	next(kernels.Prefill, 5)
	next(kernels.Decode, 1)
	add(2, 12)
	next(kernels.Mixed, 1, 7)
	next(kernels.Mixed, 1, 5)
	next(kernels.Decode, 1, 1)
}

func TestTooLong(t *testing.T) {
	s, err := New(Options{Pages: 2, Context: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		tokens, max int
		ok          bool
	}{{1, 129, true}, {1, 130, false}, {128, 0, false}, {1000, 0, false}, {10, 0, false}, {10, 10, false},
		{128, 129, true}} {
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

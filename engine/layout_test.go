package engine_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"glmbatch/engine"
	"glmbatch/engine/glm5"
	"glmbatch/kernels"
)

// apart is a model whose ranks have sequences of their own.
func apart(t testing.TB, tp, threads int) *glm5.Model {
	return load(t, tp, threads, glm5.Options{Layout: glm5.Throughput, MaxRows: 120, MaxSeqs: 5, MaxLogits: 12,
		Pages: 12, Context: 256})
}

// In the throughput layout too a request's tokens, and their log-probabilities to the bit, are
// its own: no limit, order, thread, neighbour or rank changes them.
func TestRanksOfTheirOwn(t *testing.T) {
	rs := requests(9, 2048)
	for i := range rs { // some have a prompt's beginning in common
		if i%3 > 0 {
			prompt := append(slices.Clone(rs[2].Prompt[:min(len(rs[2].Prompt), 70)]), rs[i].Prompt...)
			rs[i].Prompt = prompt[:min(150, len(prompt))]
		}
	}
	for _, tp := range []int{2, 8} {
		m := apart(t, tp, 2)
		want := map[int64]answer{}
		for _, r := range rs { // each alone
			got, _ := answers(t, m, engine.Options{}, []engine.Request{r})
			maps.Copy(want, got)
		}
		shuffled := slices.Clone(rs)
		rand.New(rand.NewPCG(3, 4)).
			Shuffle(len(rs), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		single := apart(t, tp, 1)
		for _, c := range []struct {
			name string
			m    *glm5.Model
			o    engine.Options
			rs   []engine.Request
		}{
			{"all at once", m, engine.Options{}, rs},
			{"one at a time", m, engine.Options{MaxSeqs: 1}, rs},
			{"shuffled", m, engine.Options{}, shuffled},
			{"small chunks", m, engine.Options{MaxBatchTokens: 7}, rs},
			{"few pages", m, engine.Options{KVTokens: 4 * kernels.PageTokens}, shuffled},
			{"one thread", single, engine.Options{MaxBatchTokens: 64, MaxSeqs: 3}, shuffled},
			{"ahead", m, engine.Options{Ahead: 2}, rs},
			{"ahead, small chunks", m, engine.Options{Ahead: 2, MaxBatchTokens: 7}, shuffled},
			{"ahead, few pages", m, engine.Options{Ahead: 2, KVTokens: 4 * kernels.PageTokens}, rs},
			{"nothing shared", m, engine.Options{NoSharing: true}, shuffled},
			{"drafts of n-grams", m, engine.Options{Speculate: engine.Speculation{Drafts: 4, NGram: true}}, rs},
		} {
			if tp == 2 && c.o.MaxBatchTokens == 7 {
				continue
			}
			got, _ := answers(t, c.m, c.o, c.rs)
			for id := range maps.Keys(got) {
				if got[id].String() != want[id].String() {
					t.Errorf("TP %d, %s: request %d:\n got %v\nwant %v", tp, c.name, id, got[id], want[id])
				}
			}
			if len(got) != len(c.rs) {
				t.Errorf("TP %d, %s: %d of %d requests answered", tp, c.name, len(got), len(c.rs))
			}
		}
	}
}

// A request has the same bits on each rank, alone there or not.
func TestAnyRank(t *testing.T) {
	const tp = 8
	m := apart(t, tp, 2)
	r := requests(6, 2048)[5]
	var want string
	for rank := range tp {
		var rs []engine.Request
		for i := range rank { // each with more to do than the one that counts
			rs = append(rs, engine.Request{ID: int64(i), Prompt: slices.Repeat([]int32{int32(7 + i)}, 200),
				Sampling: engine.Sampling{MaxTokens: 30, IgnoreEOS: true}})
		}
		on := map[int]bool{}
		o := engine.Options{OnStepDone: func(d engine.Done) error {
			for i, seq := range d.Batch.Seq {
				if d.Batch.Tokens[i] == r.Prompt[d.Batch.Pos[i]%int32(len(r.Prompt))] &&
					int(d.Batch.Pos[i]) < len(r.Prompt) {
					on[int(seq)/m.Options().MaxSeqs] = true
				}
			}
			return nil
		}}
		got, _ := answers(t, m, o, append(rs, r))
		if !on[rank] {
			t.Errorf("the request was to run on rank %d, and ran on %v", rank, on)
		}
		if s := got[r.ID].String(); want == "" {
			want = s
		} else if s != want {
			t.Errorf("rank %d:\n got %v\nwant %v", rank, s, want)
		}
	}
}

// With one rank there is nothing to share out, and the layouts are one. With more their bits
// may differ: attention's output is one sum there and one of each rank's heads here.
func TestLayoutsOfOneRank(t *testing.T) {
	rs := requests(8, 2048)
	got, _ := answers(t, apart(t, 1, 2), engine.Options{}, rs)
	want, _ := answers(t, load(t, 1, 2, glm5.Options{MaxRows: 120, MaxSeqs: 5, MaxLogits: 12, Pages: 12, Context: 256}),
		engine.Options{}, rs)
	for id := range want {
		if got[id].String() != want[id].String() {
			t.Errorf("request %d:\n got %v\nwant %v", id, got[id], want[id])
		}
	}
}

// Drafts are for few requests, on all ranks together.
func TestDraftsOfManyRanks(t *testing.T) {
	const tp, seats = 4, 5
	var rs []engine.Request
	for i := range tp * seats {
		rs = append(rs, engine.Request{ID: int64(i), Prompt: []int32{7, 8, 7, 8, 7},
			Sampling: engine.Sampling{MaxTokens: 80, IgnoreEOS: true, Bias: []engine.Bias{{Token: 7, Gain: 100}}}})
	}
	many, few := 0, 0
	o := engine.Options{Speculate: engine.Speculation{Drafts: 1, NGram: true, Auto: true}}
	o.OnStep = func(i engine.StepInfo) {
		if i.Sequences > engine.AutoRows {
			many++
			if i.Drafted > 0 {
				t.Errorf("%d drafts of %d requests", i.Drafted, i.Sequences)
			}
		} else {
			few += i.Drafted
		}
	}
	answers(t, apart(t, tp, 1), o, rs)
	answers(t, apart(t, tp, 1), o, rs[:3])
	if many == 0 || few == 0 {
		t.Errorf("%d steps of many requests, %d drafts in those of few", many, few)
	}
}

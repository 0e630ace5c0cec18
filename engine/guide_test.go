package engine_test

import (
	"fmt"
	"testing"

	"glmbatch/engine"
	"glmbatch/engine/glm5"
	"glmbatch/kernels"
)

// ladder allows the tokens near one that the last one decides, and keeps what it is told.
type ladder struct {
	last   int32
	closed int
	asked  []int32 // the last token at each question
}

const ladderWidth = 40

func (l *ladder) base() int32 { return l.last * 31 % 1500 }

func (l *ladder) Ask(...int32) {}
func (l *ladder) May() int     { return 0 }
func (l *ladder) Close()       { l.closed++ }

func (l *ladder) Mask(_ int, words []uint64) (bool, error) {
	l.asked = append(l.asked, l.last)
	if l.last%5 == 4 {
		return false, nil
	}
	for t := l.base(); t < l.base()+ladderWidth; t++ {
		words[t/64] |= 1 << (t % 64)
	}
	return true, nil
}

func (l *ladder) Add(tokens ...int32) { l.last = tokens[len(tokens)-1] }

// Guided requests give tokens that their guides allow, and the same bits whatever is
// on its way and whatever runs beside them; others do not notice.
func TestGuide(t *testing.T) {
	m := load(t, 1, 1, glm5.Options{MaxRows: 40, MaxSeqs: 6, Context: 200, Pages: 8})
	requests := func(guided func(i int) bool) ([]engine.Request, map[int64]*ladder) {
		guides := map[int64]*ladder{}
		var list []engine.Request
		for i := range 6 {
			r := engine.Request{ID: int64(i), Prompt: []int32{5, int32(70 * i), 9, 200},
				Sampling: engine.Sampling{MaxTokens: 20 + 5*i, Temperature: float32(i%3) / 2, Seed: uint64(i),
					Logprobs: 4, IgnoreEOS: true}}
			if guided(i) {
				guides[r.ID] = &ladder{last: 1}
				r.Guide = guides[r.ID]
			}
			list = append(list, r)
		}
		return list, guides
	}
	odd := func(i int) bool { return i%2 == 1 }
	run := func(o engine.Options, guided func(i int) bool, only func(i int) bool) (map[int64]answer,
		map[int64]*ladder) {
		list, guides := requests(guided)
		var some []engine.Request
		for i, r := range list {
			if only(i) {
				some = append(some, r)
			}
		}
		got, _ := answers(t, m, o, some)
		return got, guides
	}
	every := func(int) bool { return true }
	want, guides := run(engine.Options{Ahead: 1}, odd, every)
	for id, l := range guides {
		a, last := want[id], int32(1)
		if len(l.asked) != len(a.tokens) {
			t.Errorf("request %d: asked %d times for %d tokens", id, len(l.asked), len(a.tokens))
		}
		for i, token := range a.tokens {
			if l.asked[i] != last {
				t.Fatalf("request %d: asked behind %d, the last token is %d", id, l.asked[i], last)
			}
			base := last * 31 % 1500
			if last%5 != 4 && (token < base || token >= base+ladderWidth) {
				t.Errorf("request %d: token %d is not in %d to %d", id, token, base, base+ladderWidth-1)
			}
			last = token
		}
	}
	for name, c := range map[string]struct {
		o            engine.Options
		guided, only func(i int) bool
	}{
		"ahead":        {engine.Options{Ahead: 2}, odd, every},
		"few rows":     {engine.Options{Ahead: 2, MaxBatchTokens: 3}, odd, every},
		"preempted":    {engine.Options{Ahead: 2, KVTokens: 2 * kernels.PageTokens}, odd, every},
		"guided alone": {engine.Options{Ahead: 2}, odd, odd},
		"others alone": {engine.Options{Ahead: 2}, odd, func(i int) bool { return !odd(i) }},
		"without a guide": {engine.Options{Ahead: 2}, func(int) bool {
			return false
		}, func(i int) bool { return !odd(i) }},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := run(c.o, c.guided, c.only)
			if len(got) == 0 {
				t.Fatal("nothing came")
			}
			for id := range got {
				if fmt.Sprint(got[id]) != fmt.Sprint(want[id]) {
					t.Errorf("request %d:\nhave %v\nwant %v", id, got[id], want[id])
				}
			}
		})
	}
	// Guides cost no steps: rows are computed ahead, whatever the token before turns out to be.
	steps := func(guided func(int) bool) int64 {
		list, _ := requests(guided)
		_, stats := answers(t, m, engine.Options{Ahead: 2}, list)
		return stats.Steps
	}
	if all, none := steps(every), steps(func(int) bool { return false }); all != none {
		t.Errorf("%d steps with guides, %d without", all, none)
	}
	some := want[1]
	for _, l := range some.top {
		if l.Logprob < -40 {
			t.Errorf("an alternative with log-probability %g: not in the mask", l.Logprob)
		}
	}
}

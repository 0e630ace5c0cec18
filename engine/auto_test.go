package engine

import (
	"testing"

	"glmbatch/kernels"
)

// A chooser tries each way and takes the one that gives the most tokens for its time. It
// leaves many requests alone, and waits with what has to be computed again until drafts
// would have saved as much.
func TestChooser(t *testing.T) {
	type way struct {
		ns     int64
		tokens int // of 10 steps of a sequence
	}
	for _, c := range []struct {
		about         string
		rows, behind  int
		none, one, of way // of 3
		want, first   int // drafts in the end, and to begin with
	}{
		{"positions are nearly free", 4, 0, way{100, 10}, way{110, 19}, way{130, 26}, 3, 3},
		{"one draft is best", 4, 0, way{100, 10}, way{110, 19}, way{200, 26}, 1, 3},
		{"drafts are never right", 4, 0, way{100, 10}, way{110, 10}, way{130, 10}, 0, 3},
		{"as good is not better", 4, 0, way{100, 10}, way{110, 11}, way{130, 13}, 0, 3},
		{"many requests", AutoRows + 1, 0, way{100, 10}, way{100, 20}, way{100, 40}, 0, 0},
		{"tokens are computed again", 2, 1000, way{100, 10}, way{110, 19}, way{130, 26}, 3, 0},
	} {
		k := chooser{most: 3}
		ways := map[int]way{0: c.none, 1: c.one, 3: c.of}
		behind, got := c.behind, -1
		for step := range 4000 {
			got = k.choose(c.rows, behind)
			if step == 0 && got != c.first {
				t.Errorf("%s: begins with %d drafts", c.about, got)
			}
			if got > 0 {
				k.begin(behind)
				behind = 0
			}
			w := ways[got]
			sampled := c.rows*w.tokens*(step%10+1)/10 - c.rows*w.tokens*(step%10)/10
			k.landed(&StepInfo{Kind: kernels.Decode, Sequences: c.rows, Tokens: c.rows * (1 + got),
				Sampled: max(1, sampled),
				Times:   kernels.Times{Wall: kernels.Interval{End: w.ns * int64(1+step%3)}}}, got)
		}
		if got != c.want {
			t.Errorf("%s: %d drafts in the end", c.about, got)
		}
	}
}

// Drafts that are never right cost a few steps, whatever the number of requests comes to be.
// To begin with them is paid once where they might have saved that, and then out of a
// hundredth of the time.
func TestChooserGivesUp(t *testing.T) {
	for _, behind := range []int{50, 500} {
		testChooserGivesUp(t, behind)
	}
}

// Engines that launch steps ahead ask twice: whether to wait for the step before, and what to take.
func testChooserGivesUp(t *testing.T, of int) {
	const steps = 4000
	k := chooser{most: 3}
	with, n, extra, begin, all := 0, 0, int64(0), int64(0), int64(0)
	k.landed(&StepInfo{Kind: kernels.Prefill, Sequences: 20, Tokens: 1000, Sampled: 20,
		Times: kernels.Times{Wall: kernels.Interval{End: 10_000}}}, 0)
	for step := range steps {
		rows := AutoRows - step*AutoRows/steps
		behind := of
		if n > 0 {
			behind = 0
		}
		first := k.choose(rows, behind)
		if n = k.choose(rows, behind); n != first {
			t.Fatalf("step %d: %d drafts, and %d when asked again", step, first, n)
		}
		if n > 0 {
			k.begin(behind)
		}
		ns := int64(100)
		if n > 0 {
			with++
			ns, extra, begin = 150, extra+50, begin+int64(behind)*k.row
		}
		all += ns
		k.landed(&StepInfo{Kind: kernels.Decode, Sequences: rows, Tokens: rows * (1 + n), Sampled: rows,
			Times: kernels.Times{Wall: kernels.Interval{End: ns}}}, n)
	}
	if with == 0 || with > tries*(1+steps/again) || 100*extra > all || begin > int64(of)*k.row+all/100 {
		t.Errorf("%d behind: %d of %d steps with drafts, which cost %d of %d ns, to begin %d", of, with, steps, extra,
			all, begin)
	}
}

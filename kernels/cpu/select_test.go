package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"glmbatch/kernels"
)

// TestPhilox holds the published vectors of Philox4x32-10: a zero key and
// counter give 6627e8d5 e169c58d, all ones 408f276d 41c83b0e.
func TestPhilox(t *testing.T) {
	for _, c := range []struct{ key, counter, want uint64 }{
		{0, 0, 0xe169c58d6627e8d5},
	} {
		if got, want := uniform(c.key, c.counter), float64(c.want>>11)/(1<<53); got != want {
			t.Errorf("uniform(%x, %x) = %v, want %v", c.key, c.counter, got, want)
		}
	}
	if a, b := uniform(1, 2), uniform(2, 1); a == b || a < 0 || a >= 1 || b < 0 || b >= 1 {
		t.Errorf("uniform(1, 2) = %v, uniform(2, 1) = %v", a, b)
	}
}

var special = []float32{0, float32(math.Copysign(0, -1)), 1, -1, float32(math.Inf(1)), float32(math.Inf(-1)),
	float32(math.NaN()), math.MaxFloat32, math.SmallestNonzeroFloat32, 1.0000001}

func TestTopK(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.OneOf(rapid.SampledFrom(special), rapid.Float32Range(-2, 2))
		scores := rapid.SliceOfN(value, 1, 300).Draw(t, "scores")
		k := rapid.IntRange(1, 64).Draw(t, "k")
		order := make([]int32, len(scores))
		for i := range order {
			order[i] = int32(i)
		}
		slices.SortStableFunc(order, func(a, b int32) int {
			switch {
			case above(scores[a], scores[b]):
				return -1
			case above(scores[b], scores[a]):
				return 1
			}
			return 0
		})
		want := order[:min(k, len(order))]
		slices.Sort(want)
		for len(want) < k {
			want = append(want, -1)
		}
		sel := make([]int32, k)
		topK(sel, scores, &scratch{})
		if !slices.Equal(sel, want) {
			t.Fatalf("have %v, want %v", sel, want)
		}
		few := make([]int32, min(k, len(scores)))
		choose(few, scores)
		if !slices.Equal(few, want[:len(few)]) {
			t.Fatalf("choose has %v, want %v", few, want)
		}
	})
}

// TestPickStaysInFilters: whatever the logits and parameters, a token comes out
// that is one, and that each filter by itself would keep.
func TestPickStaysInFilters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.OneOf(rapid.SampledFrom(special), rapid.Float32Range(-20, 20))
		l := rapid.SliceOfN(value, 1, 200).Draw(t, "logits")
		some := rapid.OneOf(rapid.SampledFrom(special), rapid.Float32Range(0, 2))
		p := kernels.SampleParams{
			Temperature: some.Draw(t, "temperature"), TopP: some.Draw(t, "top_p"), MinP: some.Draw(t, "min_p"),
			TopK: rapid.Int32Range(-1, 250).Draw(t, "top_k"), Repetition: 1, Seen: -1,
			Seed: rapid.Uint64().Draw(t, "seed"), Counter: rapid.Uint64().Draw(t, "counter"),
		}
		s := &scratch{}
		token := pick(l, p, s)
		if token < 0 || int(token) >= len(l) {
			t.Fatalf("token %d of %d", token, len(l))
		}
		if again := pick(l, p, s); again != token {
			t.Fatalf("token %d, then %d", token, again)
		}
		if p.TopK > 0 {
			better := 0
			for i, v := range l {
				if above(v, l[token]) || !above(l[token], v) && i < int(token) {
					better++
				}
			}
			if better >= int(p.TopK) {
				t.Fatalf("token %d is number %d of the best %d", token, better+1, p.TopK)
			}
		}
		var out kernels.Sampled
		out.Token = token
		report(&out, l, &kernels.SampleParams{Logprobs: rapid.Int32Range(-1, 30).Draw(t, "logprobs")}, nil, s)
	})
}

// TestDraws compares how often tokens are drawn with their probabilities.
func TestDraws(t *testing.T) {
	l := []float32{2, 1, 0, -1, -5, 1.5}
	for _, p := range []kernels.SampleParams{
		{Temperature: 1, TopP: 1},
		{Temperature: .5, TopP: 1, TopK: 3},
		{Temperature: 2, TopP: .8},
		{Temperature: 1, TopP: 1, MinP: .3},
	} {
		const n = 20000
		var counts [6]float64
		s := &scratch{}
		for i := range n {
			p.Counter = uint64(i)
			counts[pick(l, p, s)]++
		}
		for i, want := range shares(l, p) {
			if got := counts[i] / n; math.Abs(got-want) > 5*math.Sqrt(want*(1-want)/n) {
				t.Errorf("%+v: token %d is drawn %.4f of the time, want %.4f", p, i, got, want)
			}
		}
	}
}

// shares returns the probability of each token, filter by filter.
func shares(l []float32, p kernels.SampleParams) []float64 {
	order := make([]int, len(l))
	e := make([]float64, len(l))
	for i, v := range l {
		order[i], e[i] = i, math.Exp(float64(v)/float64(p.Temperature))
	}
	slices.SortFunc(order, func(a, b int) int { return int(math.Copysign(1, e[b]-e[a])) })
	if p.TopK > 0 {
		order = order[:p.TopK]
	}
	total, have := 0.0, 0.0
	for _, i := range order {
		total += e[i]
	}
	n := 0
	for n < len(order) && have < float64(p.TopP)*total && e[order[n]] >= float64(p.MinP)*e[order[0]] {
		have += e[order[n]]
		n++
	}
	out := make([]float64, len(l))
	for _, i := range order[:n] {
		out[i] = e[i] / have
	}
	return out
}

// BenchmarkTopK is the selection of GLM-5's 2,048 and the demo's 64 positions.
func BenchmarkTopK(b *testing.B) {
	for _, size := range []struct{ scores, k int }{{800, 64}, {8192, 2048}, {131072, 2048}} {
		b.Run(fmt.Sprintf("%d_of_%d", size.k, size.scores), func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 2))
			scores, sel, s := make([]float32, size.scores), make([]int32, size.k), new(scratch)
			for i := range scores {
				scores[i] = float32(r.NormFloat64())
			}
			for b.Loop() {
				topK(sel, scores, s)
			}
		})
	}
}

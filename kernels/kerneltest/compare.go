package kerneltest

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"glmbatch/kernels"
)

// compare returns the worst difference of got, an example's arguments after the
// run, from the reference on each rank: relative to the output's largest value.
func (e *example) compare(got [][][]byte) (worst float64, err error) {
	for rank := range e.ranks {
		ref := e.reference(rank)
		for i, want := range ref.want {
			w, err := e.compareOne(i, got[i][rank], want, rank)
			if err != nil {
				return w, fmt.Errorf("argument %s on rank %d differs from the reference: %w", e.args[i].Name, rank, err)
			}
			worst = max(worst, w)
		}
	}
	return worst, nil
}

func (e *example) compareOne(i int, got []byte, want any, rank int) (float64, error) {
	switch want := want.(type) {
	case []int32:
		if g := getInts(got); !slices.Equal(g, want) {
			return 0, fmt.Errorf("have %v, want %v", head(g), head(want))
		}
		return 0, nil
	case []float64:
		return within(getFloats(got), want, e.k.MaxDiff)
	case halves:
		g := make([]float64, len(got)/2)
		for j := range g {
			g[j] = bf16(got[2*j:])
		}
		return within(g, want, e.k.MaxDiff)
	case map[int][]float64:
		return e.compareCache(got, e.args[i].on(rank), want, rank)
	case []drawn:
		return compareDrawn(got, want)
	}
	return 0, fmt.Errorf("no way to compare a %T", want)
}

func head[T any](v []T) []T { return v[:min(len(v), 12)] }

// within compares values; where want is NaN anything goes.
func within(got, want []float64, limit float64) (float64, error) {
	if len(got) != len(want) {
		return 0, fmt.Errorf("have %d values, want %d", len(got), len(want))
	}
	size, worst, at := 0.0, 0.0, 0
	for i, w := range want {
		if w != w {
			continue
		}
		size = max(size, math.Abs(w))
		if d := math.Abs(got[i] - w); d > worst || d != d {
			worst, at = d, i
		}
		if worst != worst {
			return worst, fmt.Errorf("value %d is %g, want %g", at, got[i], w)
		}
	}
	if size > 0 {
		worst /= size
	}
	if worst > limit {
		return worst, fmt.Errorf("value %d is %g, want %g: off by %.3g of the largest, at most %.3g", at, got[at],
			want[at], worst, limit)
	}
	return worst, nil
}

// compareCache checks the entries that were to be written, and that no other was.
func (e *example) compareCache(got, before []byte, want map[int][]float64, rank int) (float64, error) {
	c, old := e.cacheOf(rank), e.cacheOf(rank)
	c.data, old.data = got, before
	var have, expected []float64
	for slot := range len(got) / c.entry() {
		entry, written := want[slot]
		if !written {
			if !bytes.Equal(c.bytes(slot), old.bytes(slot)) {
				return 0, fmt.Errorf("slot %d was written", slot)
			}
			continue
		}
		have, expected = append(have, c.get(slot)...), append(expected, entry...)
	}
	return within(have, expected, e.k.MaxDiff)
}

// logprobDiff is how far log-probabilities may be off: they are sums over a
// vocabulary, of which the table says nothing.
const logprobDiff = 2e-6

// sampledSize is the bytes of a kernels.Sampled.
const sampledSize = 8 + 8*kernels.MaxLogprobs

// apart is how far two log-probabilities are apart: -Inf is -Inf.
func apart(a, b float64) float64 {
	if a == b {
		return 0
	}
	return math.Abs(a - b)
}

func compareDrawn(got []byte, want []drawn) (float64, error) {
	const size = sampledSize
	worst := 0.0
	for m, w := range want {
		b := got[m*size:][:size]
		v, f := getInts(b), getFloats(b)
		if v[0] != w.token {
			return 0, fmt.Errorf("row %d has token %d, want %d", m, v[0], w.token)
		}
		worst = max(worst, apart(f[1], w.logprob))
		for i := range kernels.MaxLogprobs {
			id := int32(-1)
			if i < len(w.ids) {
				id = w.ids[i]
				worst = max(worst, apart(f[2+kernels.MaxLogprobs+i], w.logps[i]))
			}
			if v[2+i] != id {
				return 0, fmt.Errorf("alternative %d of row %d is token %d, want %d", i, m, v[2+i], id)
			}
		}
	}
	if !(worst <= logprobDiff) {
		return worst, fmt.Errorf("a log-probability is off by %.3g", worst)
	}
	return worst, nil
}

package cpu

import (
	"cmp"
	"math"
	"slices"

	"glmbatch/kernels"
	"glmbatch/kernels/cpu/simd"
)

// sample chooses a token for each row of logits, by the rules of
// [kernels.SampleParams]. Logits that are no numbers are as unlikely as can be.
func sample(x *frame, lo, hi int) error {
	logits := x.rows(0, x.M, x.N)
	ps, out := x.bytes(1, x.rank), x.bytes(3, x.rank)
	n := int(x.N)
	if x.TopK > 0 {
		n = min(n, int(x.TopK))
	}
	if x.err == nil && (len(ps) < int(x.M)*paramBytes || !aligned(ps, 8)) {
		x.fail(1, "%d bytes, aligned to 8, for %d rows of %d", len(ps), x.M, paramBytes)
	}
	if x.err == nil && (len(out) < int(x.M)*sampledBytes || !aligned(out, 8)) {
		x.fail(3, "%d bytes, aligned to 8, for %d rows of %d", len(out), x.M, sampledBytes)
	}
	if x.err == nil && n < 1 {
		x.fail(0, "no tokens to choose from")
	}
	if x.err != nil {
		return x.err
	}
	for m := lo; m < hi; m++ {
		p, l := &params(ps)[m], row(logits, m, int(x.N))[:n]
		list := x.entriesOf(p)
		raw := x.masked(l, p)
		steered := x.steered(raw, p, list)
		if x.err != nil {
			return x.err
		}
		s := &sampled(out)[m]
		switch {
		case !(steered[argmax(steered)] > negInf):
			report(s, nil, p, nil, x.s)
			s.Token = -1
			continue
		case p.Forced >= 0 && int(p.Forced) < n:
			s.Token = p.Forced
		default:
			s.Token = pick(steered, *p, x.s)
		}
		report(s, raw, p, labelsOf(p, list), x.s)
	}
	return nil
}

// labelsOf is those of a row's entries.
func labelsOf(p *kernels.SampleParams, list []kernels.Entry) []kernels.Entry {
	from := min(len(list), max(0, int(p.Biases)))
	return list[from:min(len(list), from+max(0, int(p.Labels)))]
}

// pick chooses a token by p from logits after the repetition penalty.
func pick(l []float32, p kernels.SampleParams, s *scratch) int32 {
	best := argmax(l)
	top := l[best]
	if !(p.Temperature > 0) || p.TopK == 1 || !(top > negInf) || top > math.MaxFloat32 {
		return best
	}
	// Each token's likelihood is relative to the best one's.
	logs, likely := s.floats(1, len(l)), s.floats(2, len(l))
	inv := 1 / float64(p.Temperature)
	for i, v := range l {
		e := float32(float64(v-top) * inv)
		if e != e {
			e = negInf
		}
		logs[i] = e
	}
	simd.ExpSum(likely, logs, 0)
	u := uniform(p.Seed, p.Counter)
	if keep := filter(l, logs, likely, p, s); keep != nil {
		return drawOf(likely, keep, u)
	}
	return drawAll(likely, u)
}

// filter returns the tokens that top-k, top-p and min-p keep, by index, and nil
// if all are off. The order is that of l: a high temperature makes equals of
// tokens in logs.
func filter(l, logs, likely []float32, p kernels.SampleParams, s *scratch) []int32 {
	few := p.TopK > 0 && int(p.TopK) < len(logs)
	if !few && !(p.TopP < 1) && !(p.MinP > 0) {
		return nil
	}
	var keep []int32
	if few {
		keep = s.ints(0, int(p.TopK))
		topK(keep, l, s)
	} else {
		keep = s.ints(0, len(logs))
		for i := range keep {
			keep[i] = int32(i)
		}
	}
	if p.TopP < 1 {
		keep = nucleus(l, logs, likely, keep, float64(p.TopP), s)
	}
	if p.MinP > 0 {
		least := min(p.MinP, 1)
		keep = slices.DeleteFunc(keep, func(i int32) bool { return likely[i] < least })
	}
	slices.Sort(keep)
	return keep
}

// nucleus returns the fewest best tokens of keep that have topP of its
// likelihood. It sorts only those about as likely as the last to be kept.
func nucleus(l, logs, likely []float32, keep []int32, topP float64, s *scratch) []int32 {
	const buckets = len(s.mass)
	bucket := func(i int32) int { return int(min(-logs[i]*32, float32(buckets-1))) }
	clear(s.mass[:])
	for _, i := range keep {
		s.mass[bucket(i)] += float64(likely[i])
	}
	total := 0.0
	for _, m := range s.mass {
		total += m
	}
	last, have := 0, 0.0
	for last < buckets-1 && have+s.mass[last] < topP*total {
		have += s.mass[last]
		last++
	}
	edge := s.ints(2, len(keep))[:0]
	n := 0
	for _, i := range keep {
		switch b := bucket(i); {
		case b < last:
			keep[n] = i
			n++
		case b == last:
			edge = append(edge, i)
		}
	}
	slices.SortFunc(edge, func(a, b int32) int {
		return cmp.Or(cmp.Compare(l[b], l[a]), cmp.Compare(a, b))
	})
	for _, i := range edge {
		keep[n] = i
		n++
		if have += float64(likely[i]); have >= topP*total {
			break
		}
	}
	return keep[:n]
}

func sumOf(likely []float32, keep []int32) float64 {
	total := 0.0
	for _, i := range keep {
		total += float64(likely[i])
	}
	return total
}

// drawOf returns the token of keep on whose share of the likelihood u falls.
func drawOf(likely []float32, keep []int32, u float64) int32 {
	at, acc := u*sumOf(likely, keep), 0.0
	for _, i := range keep {
		if acc += float64(likely[i]); acc > at {
			return i
		}
	}
	return keep[len(keep)-1]
}

// drawAll is drawOf for all tokens.
func drawAll(likely []float32, u float64) int32 {
	total := 0.0
	for _, v := range likely {
		total += float64(v)
	}
	at, acc, last := u*total, 0.0, 0
	for i, v := range likely {
		if v > 0 {
			last = i
		}
		if acc += float64(v); acc > at {
			return int32(i)
		}
	}
	return int32(last)
}

// argmax returns the index of the largest value, the lowest of equals; 0 when
// none is a number above -Inf.
func argmax(l []float32) int32 {
	best, top := 0, negInf
	for i, v := range l {
		if v > top {
			best, top = i, v
		}
	}
	return int32(best)
}

// report fills in the log-probabilities, which are of the logits l.
func report(s *kernels.Sampled, l []float32, p *kernels.SampleParams, labels []kernels.Entry, scr *scratch) {
	s.Logprob = 0
	for i := range s.IDs {
		s.IDs[i], s.Logps[i] = -1, 0
	}
	if p.Logprobs < 0 || len(l) == 0 {
		return
	}
	wanted := min(int(p.Logprobs), len(l), kernels.MaxLogprobs)
	norm := logSumExp(l, scr)
	s.Logprob = float32(float64(l[s.Token]) - norm)
	ids := s.IDs[:wanted]
	choose(ids, l)
	slices.SortFunc(ids, func(a, b int32) int {
		if above(l[a], l[b]) {
			return -1
		}
		if above(l[b], l[a]) {
			return 1
		}
		return cmp.Compare(a, b)
	})
	for i, id := range ids {
		if s.Logps[i] = float32(float64(l[id]) - norm); !(l[id] > negInf) {
			s.IDs[i], s.Logps[i] = -1, 0
		}
	}
	for i, e := range labels[:min(len(labels), kernels.MaxLogprobs-wanted)] {
		s.IDs[wanted+i], s.Logps[wanted+i] = e.Token, float32(float64(l[e.Token])-norm)
	}
}

// logSumExp sums blocks of the row in float32 and the blocks in float64.
func logSumExp(l []float32, s *scratch) float64 {
	const block = 1024
	top, total := l[argmax(l)], 0.0
	e := s.floats(1, block)
	for i := 0; i < len(l); i += block {
		part := l[i:min(i+block, len(l))]
		total += float64(simd.ExpSum(e, part, top))
	}
	return float64(top) + math.Log(total)
}

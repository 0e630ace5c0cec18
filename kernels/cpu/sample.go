package cpu

import (
	"cmp"
	"math"
	"slices"

	"glmbatch/kernels"
	"glmbatch/kernels/cpu/simd"
)

// sample chooses a token for each row of logits. The filters come in the order
// repetition, temperature, top-k, top-p, min-p; each keeps the best tokens of
// those before it, and top-p's share is of what top-k left. The draw is one
// [uniform] number of (Seed, Counter), laid on the probabilities of the tokens
// that were kept, in the order of their numbers. Logits that are no numbers are
// as unlikely as can be.
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
		p, l := params(ps)[m], row(logits, m, int(x.N))[:n]
		if l = x.repeated(l, p); x.err != nil {
			return x.err
		}
		s := &sampled(out)[m]
		if !(l[argmax(l)] > negInf) {
			report(s, nil, -1, x.s)
			s.Token = -1
			continue
		}
		s.Token = pick(l, p, x.s)
		report(s, row(logits, m, int(x.N))[:n], int(p.Logprobs), x.s)
	}
	return nil
}

// repeated returns the logits with the repetition penalty on tokens seen.
func (x *frame) repeated(l []float32, p kernels.SampleParams) []float32 {
	if p.Repetition == 1 || p.Repetition <= 0 || p.Seen < 0 {
		return l
	}
	size := (int(x.N) + 63) / 64 * 8
	if pitch := int(x.call.Args[2].Pitch); pitch > 0 {
		size = max(size, pitch)
	}
	seen := x.bytes(2, x.rank)
	if int64(p.Seen) >= int64(len(seen)/size) {
		x.fail(2, "no bitmap %d of %d bytes in %d", p.Seen, size, len(seen))
		return nil
	}
	seen = seen[int(p.Seen)*size:][:size]
	out := x.s.floats(0, len(l))
	copy(out, l)
	for b, set := range seen[:(len(l)+7)/8] {
		for i := b * 8; set != 0 && i < len(l); i, set = i+1, set>>1 {
			switch {
			case set&1 == 0:
			case out[i] > 0:
				out[i] /= p.Repetition
			default:
				out[i] *= p.Repetition
			}
		}
	}
	return out
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

// report fills in the log-probabilities, which are of the logits as they came.
func report(s *kernels.Sampled, l []float32, wanted int, scr *scratch) {
	s.Logprob = 0
	for i := range s.IDs {
		s.IDs[i], s.Logps[i] = -1, 0
	}
	if wanted < 0 {
		return
	}
	wanted = min(wanted, len(l), kernels.MaxLogprobs)
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
		s.Logps[i] = float32(float64(l[id]) - norm)
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

package kerneltest

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"glmbatch/kernels"
)

// drawn is what the sample kernel should say of one row.
type drawn struct {
	token   int32
	logprob float64
	ids     []int32
	logps   []float64
}

func refSample(r *reference) {
	logits, wide := r.f(0), int(r.d.N)
	n := wide
	if r.d.TopK > 0 {
		n = int(r.d.TopK)
	}
	var want []drawn
	for m := range int(r.d.M) {
		p := r.args[1].on(r.rank)[48*m:][:48]
		want = append(want, refRow(logits[m*wide:][:n], p, r.args[2].on(r.rank), (wide+63)/64*8))
	}
	r.want[3] = want
}

// refRow samples one row by the rules of [kernels.SampleParams].
func refRow(logits []float64, p, seen []byte, rowBytes int) drawn {
	field := func(i int) float64 { return float64(float32At(p, i)) }
	number := func(i int) int { return int(int32(binary.LittleEndian.Uint32(p[4*i:]))) }
	temperature, topP, minP, repetition := field(0), field(1), field(2), field(3)
	topK, logprobs, seenRow := number(4), number(5), number(6)

	l := slices.Clone(logits)
	for i := range l {
		if seenRow >= 0 && seen[seenRow*rowBytes+i/8]>>(i%8)&1 != 0 {
			if l[i] > 0 {
				l[i] /= repetition
			} else {
				l[i] *= repetition
			}
		}
	}
	order := descending(l)
	out := drawn{token: order[0]}
	if temperature > 0 {
		best := l[order[0]]
		prob := func(i int32) float64 { return math.Exp((l[i] - best) / temperature) }
		if topK > 0 {
			order = order[:min(topK, len(order))]
		}
		total, have := 0.0, 0.0
		for _, i := range order {
			total += prob(i)
		}
		for n, i := range order {
			if have += prob(i); topP < 1 && have >= topP*total {
				order = order[:n+1]
				break
			}
		}
		order = slices.DeleteFunc(order, func(i int32) bool { return prob(i) < minP })
		slices.Sort(order)
		total, have = 0, 0
		for _, i := range order {
			total += prob(i)
		}
		u := philox(binary.LittleEndian.Uint64(p[32:]), binary.LittleEndian.Uint64(p[40:]))
		for _, i := range order {
			if have += prob(i); have > u*total {
				out.token = i
				break
			}
		}
	}
	if logprobs >= 0 {
		order = descending(logits)
		sum := 0.0
		for _, v := range logits {
			sum += math.Exp(v - logits[order[0]])
		}
		norm := logits[order[0]] + math.Log(sum)
		out.logprob = logits[out.token] - norm
		for _, i := range order[:min(logprobs, kernels.MaxLogprobs)] {
			out.ids, out.logps = append(out.ids, i), append(out.logps, logits[i]-norm)
		}
	}
	return out
}

// descending returns the indices by value, largest first, ties by index.
func descending(v []float64) []int32 {
	order := make([]int32, len(v))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(v[b], v[a]) })
	return order
}

// philox is Philox4x32-10's first two words as 53 bits of [0, 1).
func philox(key, counter uint64) float64 {
	x := [4]uint64{counter & 0xffffffff, counter >> 32, 0, 0}
	k := [2]uint64{key & 0xffffffff, key >> 32}
	for range 10 {
		a, b := x[0]*0xd2511f53, x[2]*0xcd9e8d57
		x = [4]uint64{b>>32 ^ x[1] ^ k[0], b & 0xffffffff, a>>32 ^ x[3] ^ k[1], a & 0xffffffff}
		k[0], k[1] = (k[0]+0x9e3779b9)&0xffffffff, (k[1]+0xbb67ae85)&0xffffffff
	}
	return float64((x[1]<<32|x[0])>>11) / (1 << 53)
}

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

// paramSize is the bytes of a kernels.SampleParams.
const paramSize = 88

func refSample(r *reference) {
	logits, wide := r.f(0), int(r.d.N)
	n := wide
	if r.d.TopK > 0 {
		n = int(r.d.TopK)
	}
	arg := func(i int) []byte { return r.args[i].on(r.rank) }
	var want []drawn
	for m := range int(r.d.M) {
		p := arg(1)[paramSize*m:][:paramSize]
		want = append(want, refRow(logits[m*wide:][:n], p,
			steering{seen: arg(2), counts: arg(4), masks: arg(5), entries: arg(6), wide: wide}))
	}
	r.want[3] = want
}

// steering is what rows of parameters refer to.
type steering struct {
	seen, counts, masks, entries []byte
	wide                         int // values of a row of logits
}

func (s *steering) bit(bitmaps []byte, row, i int) bool {
	return bitmaps[row*((s.wide+63)/64*8)+i/8]>>(i%8)&1 != 0
}

func (s *steering) count(row, i int) uint16 {
	return binary.LittleEndian.Uint16(s.counts[row*((s.wide+3)/4*8)+2*i:])
}

// entry is the token of an entry, the token that it must come after, and its bias.
func (s *steering) entry(i int) (token, after int, bias float64) {
	b := s.entries[12*i:][:12]
	return int(getInts(b)[0]), int(getInts(b)[1]), float64(float32At(b, 2))
}

// refRow samples one row by the rules of [kernels.SampleParams].
func refRow(logits []float64, p []byte, s steering) drawn {
	field := func(i int) float64 { return float64(float32At(p, i)) }
	number := func(i int) int { return int(int32(binary.LittleEndian.Uint32(p[4*i:]))) }
	temperature, topP, minP, repetition := field(0), field(1), field(2), field(3)
	topK, logprobs, seenRow, last := number(4), number(5), number(6), number(7)
	presence, frequency := field(12), field(13)
	countRow, mask, allowed, first := number(14), number(15), number(16), number(17)
	biases, labels, forced := number(18), number(19), number(20)
	assumed := map[int]int{}
	for j := range number(21) {
		token, _, _ := s.entry(first + biases + labels + j)
		assumed[token]++
	}

	logits = slices.Clone(logits)
	for i := range logits {
		if mask >= 0 && !s.bit(s.masks, mask, i) {
			logits[i] = math.Inf(-1)
		}
	}
	l := slices.Clone(logits)
	for i := range l {
		if allowed >= 0 && !s.bit(s.masks, allowed, i) {
			l[i] = math.Inf(-1)
		}
	}
	for j := range biases {
		if token, after, bias := s.entry(first + j); after < 0 || after == last {
			l[token] += bias
		}
	}
	for i := range l {
		if seenRow >= 0 && (s.bit(s.seen, seenRow, i) || assumed[i] > 0) {
			if l[i] > 0 {
				l[i] /= repetition
			} else {
				l[i] *= repetition
			}
		}
		if countRow < 0 {
			continue
		}
		if c := int(s.count(countRow, i)) + assumed[i]; c > 0 {
			l[i] -= frequency*float64(c) + presence
		}
	}
	order := descending(l)
	out := drawn{token: order[0]}
	switch {
	case forced >= 0:
		out.token = int32(forced)
	case temperature > 0:
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
			if math.IsInf(logits[i], -1) {
				i = -1
			}
			out.ids, out.logps = append(out.ids, i), append(out.logps, 0)
			if i >= 0 {
				out.logps[len(out.logps)-1] = logits[i] - norm
			}
		}
		for j := range labels {
			token, _, _ := s.entry(first + biases + j)
			out.ids, out.logps = append(out.ids, int32(token)), append(out.logps, logits[token]-norm)
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

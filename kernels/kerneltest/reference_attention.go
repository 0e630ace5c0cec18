package kerneltest

import (
	"math"
	"slices"

	"glmbatch/kernels"
)

func refLatentWrite(r *reference) {
	x, w, rope, pos, slots := r.f(0), r.f(1), r.f(2), r.ints(3), r.ints(4)
	k, wide := int(r.d.K), int(r.d.K+r.d.Rope)
	entries := map[int][]float64{}
	for m, s := range slots {
		in := x[m*wide:][:wide]
		e := append(norm(in[:k], w, r.scalars[0]), in[k:]...)
		turn(e[k:], rope, pos[m])
		entries[int(s)] = e
	}
	r.want[5] = entries
}

func refIndexWrite(r *reference) {
	x, w, b, rope, pos, slots := r.f(0), r.f(1), r.f(2), r.f(3), r.ints(4), r.ints(5)
	k := int(r.d.K)
	entries := map[int][]float64{}
	for m, s := range slots {
		in := x[m*k:][:k]
		mean, dev := 0.0, 0.0
		for _, v := range in {
			mean += v / float64(k)
		}
		for _, v := range in {
			dev += (v - mean) * (v - mean) / float64(k)
		}
		e := make([]float64, k)
		for i, v := range in {
			e[i] = (v-mean)/math.Sqrt(dev+float64(r.scalars[0]))*w[i] + b[i]
		}
		turn(e[:r.d.Rope], rope, pos[m])
		entries[int(s)] = e
	}
	r.want[6] = entries
}

// slot returns where a position of a sequence is.
func (r *reference) slot(pages []int32, seq int32, pos int) int {
	return int(pages[int(seq)*r.pageWidth+pos/kernels.PageTokens])*kernels.PageTokens + pos%kernels.PageTokens
}

// refIndexLogits leaves NaN where a score may be anything.
func refIndexLogits(r *reference) {
	q, hw, rope, pages, seq, pos := r.f(0), r.f(1), r.f(2), r.ints(4), r.ints(5), r.ints(6)
	n, k, heads := int(r.d.N), int(r.d.K), int(r.d.Heads)
	c := r.cacheOf(r.rank)
	y := make([]float64, int(r.d.M)*n)
	for i := range y {
		y[i] = math.NaN()
	}
	for m := range int(r.d.M) {
		for h := range heads {
			turn(q[(m*heads+h)*k:][:r.d.Rope], rope, pos[m])
		}
		r.round(q[m*heads*k:][:heads*k])
		for s := range int(pos[m]) + 1 {
			key, sum := c.get(r.slot(pages, seq[m], s)), 0.0
			for h := range heads {
				sum += hw[m*heads+h] * max(0, dot(q[(m*heads+h)*k:][:k], key)) * float64(r.scalars[0])
			}
			y[m*n+s] = sum
		}
	}
	r.want[7] = y
}

func refIndexTopK(r *reference) {
	scores, pos, n := r.f(0), r.ints(1), int(r.d.N)
	var sel []int32
	for m := range int(r.d.M) {
		order := descending(scores[m*n:][:pos[m]+1])
		order = order[:min(len(order), int(r.d.TopK))]
		slices.Sort(order)
		for len(order) < int(r.d.TopK) {
			order = append(order, -1)
		}
		sel = append(sel, order...)
	}
	r.want[2] = sel
}

func refAttend(r *reference) {
	q, pages, seq, pos := r.f(0), r.ints(2), r.ints(3), r.ints(4)
	k, wide, heads, top := int(r.d.K), int(r.d.K+r.d.Rope), int(r.d.Heads), int(r.d.TopK)
	c := r.cacheOf(r.rank)
	y := make([]float64, int(r.d.M)*heads*k)
	for m := range int(r.d.M) {
		var entries [][]float64
		if top > 0 {
			for _, p := range r.ints(5)[m*top:][:top] {
				if p >= 0 {
					entries = append(entries, c.get(r.slot(pages, seq[m], int(p))))
				}
			}
		} else {
			for p := range int(pos[m]) + 1 {
				entries = append(entries, c.get(r.slot(pages, seq[m], p)))
			}
		}
		for h := range heads {
			softmax(y[(m*heads+h)*k:][:k], q[(m*heads+h)*wide:][:wide], entries, float64(r.scalars[0]))
		}
	}
	r.want[6] = y
}

// halves are values that the kernel writes as BF16.
type halves []float64

func refCast(r *reference) {
	c := r.cacheOf(r.rank)
	var pool halves
	for slot := range int(r.d.Slots) {
		pool = append(pool, c.get(slot)...)
	}
	r.want[1] = pool
}

func softmax(y, q []float64, entries [][]float64, scale float64) {
	p, top, sum := make([]float64, len(entries)), math.Inf(-1), 0.0
	for i, e := range entries {
		p[i] = scale * dot(q, e)
		top = max(top, p[i])
	}
	for i := range p {
		p[i] = math.Exp(p[i] - top)
		sum += p[i]
	}
	for i, e := range entries {
		for j := range y {
			y[j] += p[i] / sum * e[j]
		}
	}
}

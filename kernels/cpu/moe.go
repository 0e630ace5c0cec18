package cpu

import (
	"glmbatch/kernels"
	"glmbatch/kernels/cpu/simd"
)

// routing groups a call's (token, choice) pairs by expert, in a stable order.
type routing struct {
	of      quantKey // the call and rank that it is of
	touched []int32  // experts that have pairs, ascending
	start   []int32  // of each expert's pairs; one more than there are experts
	pairs   []int32  // token·TopK + choice, by expert
	tokens  []int32  // pairs / TopK
}

// route groups the experts argument of a call. A worker that does several parts
// of the call groups once.
func (x *frame) route(arg int) *routing {
	r, key := &x.s.route, quantKey{call: x.id, rank: x.rank}
	if x.copies(arg) == 1 {
		key.rank = 0 // all ranks route alike
	}
	experts := x.intRows(arg, x.M, x.TopK)
	if x.err != nil || r.of == key {
		return r
	}
	k, n := int(x.TopK), int(x.M)*int(x.TopK)
	r.of = quantKey{}
	r.start, r.pairs, r.tokens = resize(r.start, int(x.Groups)+1), resize(r.pairs, n), resize(r.tokens, n)
	clear(r.start)
	for m := range int(x.M) {
		for _, e := range intRow(experts, m, k) {
			if e < 0 || e >= x.Groups {
				x.fail(arg, "expert %d of row %d is not one of %d", e, m, x.Groups)
				return r
			}
			r.start[e+1]++
		}
	}
	r.touched = r.touched[:0]
	for e := range x.Groups {
		if r.start[e+1] > 0 {
			r.touched = append(r.touched, e)
		}
		r.start[e+1] += r.start[e]
	}
	for m := range int(x.M) {
		for i, e := range intRow(experts, m, k) {
			at := r.start[e] // where the expert's next pair goes
			r.pairs[at], r.tokens[at] = int32(m*k+i), int32(m)
			r.start[e]++
		}
	}
	copy(r.start[1:], r.start[:x.Groups])
	r.start[0] = 0
	r.of = key
	return r
}

// of returns an expert's pairs and their tokens.
func (r *routing) expert(e int32) (pairs, tokens []int32) {
	a, b := r.start[e], r.start[e+1]
	return r.pairs[a:b], r.tokens[a:b]
}

func resize(v []int32, n int) []int32 {
	if cap(v) < n {
		return make([]int32, n, n+n/4)
	}
	return v[:n]
}

// moeUpUnits: a unit is about a panel of one expert's outputs. How many experts
// have tokens is only known when the call runs.
func moeUpUnits(d *kernels.Dims) int {
	return int(min(int64(d.Groups), int64(d.M)*int64(d.TopK))) * panels(d.N)
}

// moeUp: y = silu(x gateᵀ) · (x upᵀ) for each (token, choice), by expert.
func moeUp(k *kernels.Kernel) work {
	weights, act := k.Format, activations[k.Inputs]
	return func(x *frame, lo, hi int) error {
		ws := x.weights(0, weights, x.Groups, 2*x.N, x.K)
		in, y := x.rows(1, x.M, x.K), x.rows(3, x.M*x.TopK, x.N)
		r := x.route(2)
		if x.err != nil {
			return x.err
		}
		x.groups = int32(len(r.touched))
		each, units := panels(x.N), moeUpUnits(&x.Dims)
		total := len(r.touched) * each
		lo, hi = lo*total/units, hi*total/units
		for lo < hi {
			i := lo / each
			end := min(hi-i*each, each)
			e := r.touched[i]
			pairs, tokens := r.expert(e)
			for len(pairs) > 0 {
				n := min(len(pairs), blockRows)
				in.Index = tokens[:n]
				x.gateUp(&ws[e], in, y, pairs[:n], lo-i*each, end, act)
				pairs, tokens = pairs[n:], tokens[n:]
			}
			lo = i*each + end
		}
		return nil
	}
}

// gateUp does panels [lo, hi) of the gate, and what belongs to them of up, for
// a few rows of one expert.
func (x *frame) gateUp(w *matrix, in, y simd.Rows, pairs []int32, lo, hi int, act activation) {
	n, s := int(x.N), &x.s.simd
	from, to := lo*simd.Lanes, min(hi*simd.Lanes, n)
	both := simd.Rows{Data: x.s.floats(0, len(pairs)*2*n), Stride: 2 * n}
	g0, g1 := w.span(from, to)
	u0, u1 := w.span(n+from, n+to)
	if g1 >= u0 { // all of both: one product
		g1, u0 = u1, u1
	}
	if act == float {
		in = x.taken(in, len(pairs), int(x.K))
		w.multiply(both, in, len(pairs), g0, g1, s)
		w.multiply(both, in, len(pairs), u0, u1, s)
	} else {
		x.s.quantOf = quantKey{}
		q := x.s.quantised(x, 0, in, len(pairs), w, act)
		w.multiplyInts(both, q, len(pairs), g0, g1, act, s)
		w.multiplyInts(both, q, len(pairs), u0, u1, act, s)
	}
	if to-from >= wideRow {
		for i, p := range pairs {
			b := row(both, i, 2*n)
			simd.SiLUMul(row(y, int(p), n)[from:to], b[from:to], b[n+from:n+to])
		}
		return
	}
	width := to - from
	gates, ups := x.s.floats(1, len(pairs)*width), x.s.floats(2, len(pairs)*width)
	for i := range pairs {
		b := row(both, i, 2*n)
		copy(gates[i*width:(i+1)*width], b[from:to])
		copy(ups[i*width:(i+1)*width], b[n+from:n+to])
	}
	simd.SiLUMul(gates, gates, ups)
	for i, p := range pairs {
		copy(row(y, int(p), n)[from:to], gates[i*width:(i+1)*width])
	}
}

// wideRow is the width from which a row is worth a call of its own.
const wideRow = 64

// moeDownUnits: a unit is a panel of outputs. Its owner adds the experts one
// after the other, so a row's sum has them in ascending order.
func moeDownUnits(d *kernels.Dims) int { return panels(d.N) }

// moeDown: y += Σ experts weight · (x downᵀ).
func moeDown(k *kernels.Kernel) work {
	weights, act := k.Format, activations[k.Inputs]
	return func(x *frame, lo, hi int) error {
		ws := x.weights(0, weights, x.Groups, x.N, x.K)
		in, y := x.rows(1, x.M*x.TopK, x.K), x.rows(4, x.M, x.N)
		scales := x.rows(3, x.M, x.TopK)
		r := x.route(2)
		if x.err != nil {
			return x.err
		}
		x.groups = int32(len(r.touched))
		n, k := int(x.N), int(x.TopK)
		var ints simd.QuantRows
		if act != float {
			ints = x.quantisedPairs(r, in, ws, act)
		}
		for _, e := range r.touched {
			pairs, tokens := r.expert(e)
			at := int(r.start[e])
			from, to := ws[e].outputs(lo, hi)
			for len(pairs) > 0 {
				b := min(len(pairs), blockRows)
				out := simd.Rows{Data: x.s.floats(0, b*n), Stride: n}
				if act == float {
					in.Index = pairs[:b]
					ws[e].multiply(out, x.taken(in, b, int(x.K)), b, lo, hi, &x.s.simd)
				} else {
					q := simd.QuantRows{Data: ints.Data[at*ints.Stride:], Stride: ints.Stride}
					ws[e].multiplyInts(out, q, b, lo, hi, act, &x.s.simd)
				}
				for i, t := range tokens[:b] {
					choice := int(pairs[i]) - int(t)*k
					simd.Axpy(row(y, int(t), n)[from:to], row(out, i, n)[from:to], row(scales, int(t), k)[choice])
				}
				pairs, tokens, at = pairs[b:], tokens[b:], at+b
			}
		}
		return nil
	}
}

// quantisedPairs returns all rows of a down call as integers, in the order of r.
func (x *frame) quantisedPairs(r *routing, in simd.Rows, ws []matrix, act activation) simd.QuantRows {
	q := simd.QuantRows{Stride: simd.QuantBytes(int(x.K))}
	q.Data = x.s.quantBytes(len(r.pairs) * q.Stride)
	if key := (quantKey{x.id, x.rank, 0}); x.s.quantOf != key {
		for _, e := range r.touched {
			pairs, _ := r.expert(e)
			for i, p := range pairs {
				at := (int(r.start[e]) + i) * q.Stride
				quantise(q.Data[at:at+q.Stride], row(in, int(p), int(x.K)), &ws[e], act)
			}
		}
		x.s.quantOf = key
	}
	return q
}

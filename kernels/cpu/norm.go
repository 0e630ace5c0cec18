package cpu

import (
	"math"

	"glmbatch/kernels/cpu/simd"
)

// rmsNorm: y = x / rms(x) * w.
func rmsNorm(x *frame, lo, hi int) error {
	in, w, y, k := x.rows(0, x.M, x.K), x.vector(1, x.K), x.rows(2, x.M, x.K), int(x.K)
	if x.err != nil {
		return x.err
	}
	for m := lo; m < hi; m++ {
		simd.RMSNorm(row(y, m, k), row(in, m, k), w, x.scalar(0))
	}
	return nil
}

// addNorm: x += part; y = x / rms(x) * w.
func addNorm(x *frame, lo, hi int) error {
	part, sum, w, y, n := x.rows(0, x.M, x.N), x.rows(1, x.M, x.N), x.vector(2, x.N), x.rows(3, x.M, x.N), int(x.N)
	if x.err != nil {
		return x.err
	}
	for m := lo; m < hi; m++ {
		acc := row(sum, m, n)
		simd.Add(acc, row(part, m, n))
		simd.RMSNorm(row(y, m, n), acc, w, x.scalar(0))
	}
	return nil
}

// siluMul: y = silu(gate) · up, for rows [gate N | up N].
func siluMul(x *frame, lo, hi int) error {
	in, y, n := x.rows(0, x.M, 2*x.N), x.rows(1, x.M, x.N), int(x.N)
	if x.err != nil {
		return x.err
	}
	for m := lo; m < hi; m++ {
		both := row(in, m, 2*n)
		simd.SiLUMul(row(y, m, n), both[:n], both[n:])
	}
	return nil
}

// layerNorm: y = (x - mean) / sqrt(var + eps) * w + b, summed in float64.
func layerNorm(y, x, w, b []float32, eps float32) {
	var sum float64
	for _, v := range x {
		sum += float64(v)
	}
	mean := sum / float64(len(x))
	var sq float64
	for _, v := range x {
		d := float64(v) - mean
		sq += d * d
	}
	r := 1 / math.Sqrt(sq/float64(len(x))+float64(eps))
	for i, v := range x {
		y[i] = float32((float64(v)-mean)*r)*w[i] + b[i]
	}
}

// rotate turns the pairs of v by the angles of a row of the table of (cos, sin).
func rotate(v, angles []float32) {
	for i := 0; i+1 < len(v); i += 2 {
		c, s, a, b := angles[i], angles[i+1], v[i], v[i+1]
		v[i], v[i+1] = float32(a*c)-float32(b*s), float32(b*c)+float32(a*s)
	}
}

// angles returns row pos of the rope table in argument i: Rope values, pairs of
// (cos, sin). It is nil, and the frame failed, when the table has no such row.
func (x *frame) angles(i int, pos int32) []float32 {
	n := int64(x.Rope)
	b := x.bytes(i, x.rank)
	if x.err != nil {
		return nil
	}
	if pos < 0 || (int64(pos)+1)*n*4 > int64(len(b)) || !aligned(b, 4) {
		x.fail(i, "no position %d in a table of %d bytes for %d rotary values", pos, len(b), n)
		return nil
	}
	return floats(b[int64(pos)*n*4 : (int64(pos)+1)*n*4])
}

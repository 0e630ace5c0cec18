package cpu

import (
	"glmbatch/kernels"
	"glmbatch/kernels/cpu/simd"
)

// blockRows is how many rows of activations are worked on at a time: they and
// a few panels of weights fit a core's cache.
const blockRows = 64

// gemmUnits: a unit is about a panel of outputs, for one block of rows.
func gemmUnits(d *kernels.Dims) int { return panels(d.N) * blocks(d.M) }

func panels(n int32) int { return (int(n) + simd.Lanes - 1) / simd.Lanes }
func blocks(m int32) int { return (int(m) + blockRows - 1) / blockRows }

// activation says how a product's inputs are rounded, after the kernel's format.
type activation uint8

const (
	float activation = iota
	fourBit
	eightBit
)

// activations are by what a kernel rounds its inputs to.
var activations = map[kernels.Format]activation{kernels.FP4: fourBit, kernels.INT8: eightBit}

// gemm: y = x wᵀ.
func gemm(k *kernels.Kernel) work {
	weights, act := k.Format, activations[k.Inputs]
	return func(x *frame, lo, hi int) error {
		ws := x.weights(0, weights, 1, x.N, x.K)
		in, y := x.rows(1, x.M, x.K), x.rows(2, x.M, x.N)
		if x.err != nil {
			return x.err
		}
		w, each := &ws[0], panels(x.N)
		for lo < hi {
			b := lo / each
			end := min(hi-b*each, each)
			from, n := b*blockRows, min(blockRows, int(x.M)-b*blockRows)
			p0, p1 := (lo-b*each)*w.panels()/each, end*w.panels()/each
			out := simd.Rows{Data: y.Data[from*y.Stride:], Stride: y.Stride}
			src := simd.Rows{Data: in.Data[from*in.Stride:], Stride: in.Stride}
			if act == float {
				w.multiply(out, x.taken(src, n, int(x.K)), n, p0, p1, &x.s.simd)
			} else {
				w.multiplyInts(out, x.s.quantised(x, b, src, n, w, act), n, p0, p1, act, &x.s.simd)
			}
			if w.scale != 1 {
				c0, c1 := w.outputs(p0, p1)
				for i := range n {
					simd.Scale(row(out, i, int(x.N))[c0:c1], w.scale)
				}
			}
			lo = b*each + end
		}
		return nil
	}
}

// taken returns n rows of a product's inputs as it takes them: as they are, or rounded to BF16.
func (x *frame) taken(rows simd.Rows, n, cols int) simd.Rows {
	if !x.rounds {
		return rows
	}
	s := x.s
	if cap(s.rounded) < n*cols {
		s.rounded = floats(heap(4 * int64(n*cols+n*cols/4)))
	}
	if cap(s.codes) < 2*cols {
		s.codes = heap(2 * int64(cols))
	}
	to, codes := simd.Rows{Data: s.rounded[:n*cols], Stride: cols}, s.codes[:2*cols]
	for i := range n {
		at := i
		if rows.Index != nil {
			at = int(rows.Index[i])
		}
		simd.EncodeBF16(codes, row(rows, at, cols))
		simd.DecodeBF16(to.Data[i*cols:(i+1)*cols], codes)
	}
	return to
}

// multiplyInts is multiply for rows that were made integers.
func (m *matrix) multiplyInts(dst simd.Rows, x simd.QuantRows, n, lo, hi int, act activation, s *simd.Scratch) {
	product := simd.GemmA8
	if act == fourBit {
		product = simd.GemmA4
	}
	first := m.w.Panels()
	if a, b := lo, min(hi, first); a < b {
		product(dst, x, n, m.w, a, b, s)
	}
	if a, b := max(lo, first), hi; a < b {
		dst.Data = dst.Data[m.w.Rows:]
		product(dst, x, n, m.up, a-first, b-first, s)
	}
}

// quantKey says what a worker's quantised rows are of.
type quantKey struct {
	call        uint64
	rank, block int
}

// quantised returns n rows as integers. Parts of one call that a worker does
// one after the other find them made.
func (s *scratch) quantised(x *frame, block int, rows simd.Rows, n int, w *matrix, act activation) simd.QuantRows {
	q := simd.QuantRows{Stride: simd.QuantBytes(w.w.Cols)}
	key := quantKey{x.id, x.rank, block}
	q.Data = s.quantBytes(n * q.Stride)
	if s.quantOf != key {
		for i := range n {
			src := rows.Data[i*rows.Stride:]
			if rows.Index != nil {
				src = rows.Data[int(rows.Index[i])*rows.Stride:]
			}
			quantise(q.Data[i*q.Stride:(i+1)*q.Stride], src[:w.w.Cols], w, act)
		}
		s.quantOf = key
	}
	return q
}

func quantise(dst []byte, x []float32, w *matrix, act activation) {
	if act == fourBit {
		simd.QuantA4(dst, x, w.w.Input())
	} else {
		simd.QuantA8(dst, x)
	}
}

func (s *scratch) quantBytes(n int) []byte {
	if cap(s.quant) < n {
		s.quant, s.quantOf = heap(int64(n+n/4)), quantKey{}
	}
	return s.quant[:n]
}

// absorbUnits: a unit is a panel of outputs of one head.
func absorbUnits(d *kernels.Dims) int { return int(d.Heads) * panels(d.N) }

// absorb brings queries [nope K | rope] into the latent space, [latent N | rope],
// and rotates their rotary part.
func absorb(f kernels.Format) work {
	return func(x *frame, lo, hi int) error {
		ws := x.weights(0, f, x.Heads, x.N, x.K)
		wide, out := int(x.K+x.Rope), int(x.N+x.Rope)
		q, pos, y := x.rows(1, x.M, x.Heads*(x.K+x.Rope)), x.ints(3, x.M), x.rows(4, x.M, x.Heads*(x.N+x.Rope))
		if x.err != nil {
			return x.err
		}
		eachHead(x, lo, hi, func(h, p0, p1 int) {
			x.perHead(ws[h], q, y, h*wide, h*out, p0, p1)
			if p0 > 0 {
				return
			}
			for m := range int(x.M) { // the head's first panel brings its rotary part
				a := x.angles(2, pos[m])
				if a == nil {
					return
				}
				dst := row(y, m, int(x.Heads)*out)[h*out+int(x.N):][:x.Rope]
				copy(dst, row(q, m, int(x.Heads)*wide)[h*wide+int(x.K):])
				rotate(dst, a)
			}
		})
		return x.err
	}
}

// valueUp brings attention's latent outputs [K] up to the heads' values [N].
func valueUp(f kernels.Format) work {
	return func(x *frame, lo, hi int) error {
		ws := x.weights(0, f, x.Heads, x.N, x.K)
		in, y := x.rows(1, x.M, x.Heads*x.K), x.rows(2, x.M, x.Heads*x.N)
		if x.err != nil {
			return x.err
		}
		eachHead(x, lo, hi, func(h, p0, p1 int) {
			x.perHead(ws[h], in, y, h*int(x.K), h*int(x.N), p0, p1)
		})
		return nil
	}
}

// eachHead calls do for the panels of every head that units [lo, hi) cover.
func eachHead(x *frame, lo, hi int, do func(h, p0, p1 int)) {
	each := panels(x.N)
	for lo < hi {
		h := lo / each
		end := min(hi-h*each, each)
		do(h, lo-h*each, end)
		lo = h*each + end
	}
}

// perHead multiplies the columns of in from col on with a head's matrix, into
// those of y from out on.
func (x *frame) perHead(w matrix, in, y simd.Rows, col, out, p0, p1 int) {
	in.Data, y.Data = in.Data[col:], y.Data[out:]
	for m := int(x.M); m > 0; m -= blockRows {
		n := min(m, blockRows)
		w.multiply(y, x.taken(in, n, int(x.K)), n, p0, p1, &x.s.simd)
		if m > n {
			in.Data, y.Data = in.Data[n*in.Stride:], y.Data[n*y.Stride:]
		}
	}
}

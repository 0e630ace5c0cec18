package cpu

import (
	"glmbatch/kernels"
	"glmbatch/kernels/cpu/simd"
)

// embed looks up the rows of a table: y[m] = table[tokens[m]].
func embed(f kernels.Format) work {
	return func(x *frame, lo, hi int) error {
		b := x.loaded(0)
		tokens, y := x.ints(1, x.M), x.rows(2, x.M, x.N)
		if x.err != nil {
			return x.err
		}
		if b.use != kernels.Gather || b.format != f || b.cols != int(x.N) {
			x.fail(0, "%s is a %s table of width %d, the call wants %s of %d", b.name, b.format, b.cols, f, x.N)
			return x.err
		}
		table, n, rows := b.on(x.rank).data, int(x.N), b.rows*b.count
		for m := lo; m < hi; m++ {
			t := int(tokens[m])
			if t < 0 || t >= rows {
				x.fail(1, "token %d of row %d is not one of %d", t, m, rows)
				return x.err
			}
			out := row(y, m, n)
			if f == kernels.BF16 {
				simd.DecodeBF16(out, table[2*t*n:2*(t+1)*n])
			} else {
				copy(out, floats(table[4*t*n:4*(t+1)*n]))
			}
		}
		return nil
	}
}

// gatherRows copies rows: y[m] = x[rows[m]].
func gatherRows(x *frame, lo, hi int) error {
	from, y := x.ints(1, x.M), x.rows(2, x.M, x.N)
	top := int32(-1)
	for _, r := range from {
		if r < 0 {
			x.fail(1, "row %d is negative", r)
			return x.err
		}
		top = max(top, r)
	}
	src := x.rows(0, top+1, x.N)
	if x.err != nil {
		return x.err
	}
	for m := lo; m < hi; m++ {
		copy(row(y, m, int(x.N)), row(src, int(from[m]), int(x.N)))
	}
	return nil
}

// row returns the n values of row i.
func row(r simd.Rows, i, n int) []float32 { return r.Data[i*r.Stride : i*r.Stride+n : i*r.Stride+n] }

package cpu

import (
	"fmt"

	"glmbatch/kernels"
	"glmbatch/kernels/cpu/simd"
)

// frame is what an implementation sees of one call on one rank. Its views are
// checked against the buffers' bounds; the first that does not fit is kept in
// err, and the views returned after it are empty.
type frame struct {
	kernels.Dims
	call   *kernels.Call
	id     uint64 // of the call, unlike that of any other in the worker's life
	rank   int
	bufs   []*buffer
	ranks  int
	groups int32 // experts that had tokens, set by the implementation
	err    error
	s      *scratch
	views  [8][]simd.Rows // of arguments that are read on several ranks, one a rank
	joint  bool           // units are counted over the ranks' heads, see impl
	rounds bool           // the call rounds its inputs to BF16
}

// bind points x at a call on a rank.
func (x *frame) bind(t *task, id uint64, rank int) {
	x.call, x.Dims, x.joint, x.id, x.rank, x.err = t.call, t.call.Dims, t.joint, id, rank, nil
	x.rounds = t.rounds
}

func (x *frame) fail(arg int, format string, a ...any) {
	if x.err == nil {
		x.err = fmt.Errorf("%w: argument %s: %s", kernels.ErrKernel, argName(x.call, arg), fmt.Sprintf(format, a...))
	}
}

func argName(c *kernels.Call, arg int) string {
	if k := kernels.Lookup(c.Kernel); k != nil && arg < len(k.Args) {
		return k.Args[arg].Name
	}
	return fmt.Sprint(arg)
}

// bytes returns argument i on a rank, nil when it is none.
func (x *frame) bytes(i, rank int) []byte {
	a := x.call.Args[i]
	if a.Index == 0 {
		return nil
	}
	if int(a.Index) > len(x.bufs) {
		x.fail(i, "no buffer %d", a.Index)
		return nil
	}
	data := x.bufs[a.Index-1].on(rank).data
	if a.Offset < 0 || a.Len < 0 || a.Offset > int64(len(data)) || a.Len > int64(len(data))-a.Offset {
		x.fail(i, "[%d, %d) is outside buffer %d of %d bytes", a.Offset, a.Offset+a.Len, a.Index, len(data))
		return nil
	}
	return data[a.Offset : a.Offset+a.Len]
}

// view returns argument i on a rank as rows of width values of 4 bytes, with
// the values from one row to the next. ok is false when there are no rows.
func (x *frame) view(i, rank, rows, width int) (b []byte, stride int, ok bool) {
	b = x.bytes(i, rank)
	stride = width
	if p := int(x.call.Args[i].Pitch); p != 0 {
		stride = p / 4
		if p%4 != 0 || stride < width {
			x.fail(i, "a pitch of %d bytes does not fit rows of %d values", p, width)
		}
	}
	switch {
	case x.err != nil || rows <= 0 || width <= 0:
		return nil, stride, false
	case !aligned(b, 4):
		x.fail(i, "not aligned to 4 bytes")
	case (len(b)/4-width)/stride < rows-1 || len(b)/4 < width:
		x.fail(i, "%d bytes are too few for %d rows of %d values %d apart", len(b), rows, width, stride)
	}
	return b, stride, x.err == nil
}

// rows returns argument i as rows of float32.
func (x *frame) rows(i int, rows, width int32) simd.Rows { return x.rowsOn(i, x.rank, rows, width) }

func (x *frame) rowsOn(i, rank int, rows, width int32) simd.Rows {
	b, stride, ok := x.view(i, rank, int(rows), int(width))
	if !ok {
		return simd.Rows{Stride: stride}
	}
	return simd.Rows{Data: floats(b), Stride: stride}
}

// vector returns argument i as n dense float32.
func (x *frame) vector(i int, n int32) []float32 {
	b, _, ok := x.view(i, x.rank, 1, int(n))
	if !ok {
		return nil
	}
	return floats(b)[:n]
}

// ints returns argument i as n dense int32.
func (x *frame) ints(i int, n int32) []int32 {
	b, _, ok := x.view(i, x.rank, 1, int(n))
	if !ok {
		return nil
	}
	return ints(b)[:n]
}

// weights returns argument i as count packed matrices of a format and shape.
func (x *frame) weights(i int, f kernels.Format, count, rows, cols int32) []matrix {
	b := x.loaded(i)
	if b == nil {
		return nil
	}
	w := b.on(x.rank).weights
	switch {
	case w == nil:
		x.fail(i, "%s was not loaded to be multiplied with", b.name)
	case b.format != f || b.count != int(count) || b.rows != int(rows) || b.cols != int(cols):
		x.fail(i, "%s is %d of %s [%d, %d], the call wants %d of %s [%d, %d]", b.name, b.count, b.format, b.rows,
			b.cols, count, f, rows, cols)
	default:
		return w
	}
	return nil
}

// loaded returns the loaded buffer that argument i names whole.
func (x *frame) loaded(i int) *buffer {
	a := x.call.Args[i]
	if a.Index == 0 || int(a.Index) > len(x.bufs) {
		x.fail(i, "no buffer %d", a.Index)
		return nil
	}
	b := x.bufs[a.Index-1]
	if b.count == 0 || a.Offset != 0 || a.Pitch != 0 {
		x.fail(i, "buffer %d is not a loaded weight", a.Index)
		return nil
	}
	return b
}

// scalar returns scalar i of the call.
func (x *frame) scalar(i int) float32 { return x.call.Scalars[i] }

// scratch is one worker's working memory. Its slots grow and are reused.
type scratch struct {
	simd  simd.Scratch
	f     [4][]float32
	i     [6][]int32
	route routing
	mass  [1024]float64 // of likelihood, see nucleus

	quant   []byte // activations as integers
	quantOf quantKey

	rounded []float32 // activations rounded to BF16
	codes   []byte    // a row of them
}

// floats returns n values of slot k, of any content.
func (s *scratch) floats(k, n int) []float32 {
	if cap(s.f[k]) < n {
		s.f[k] = floats(heap(4 * int64(n+n/4)))
	}
	return s.f[k][:n]
}

// ints returns n values of slot k, of any content.
func (s *scratch) ints(k, n int) []int32 {
	if cap(s.i[k]) < n {
		s.i[k] = make([]int32, n, n+n/4)
	}
	return s.i[k][:n]
}

// intRows is rows for int32.
type intRows struct {
	data   []int32
	stride int
}

func (x *frame) intRows(i int, rows, width int32) intRows {
	b, stride, ok := x.view(i, x.rank, int(rows), int(width))
	if !ok {
		return intRows{stride: stride}
	}
	return intRows{ints(b), stride}
}

func intRow(r intRows, i, n int) []int32 {
	return r.data[i*r.stride : i*r.stride+n : i*r.stride+n]
}

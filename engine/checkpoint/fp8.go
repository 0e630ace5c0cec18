package checkpoint

import (
	"encoding/binary"
	"fmt"
	"math"

	"glmbatch/kernels"
	"glmbatch/kernels/nvfp4"
)

// blocks are the scales of a weight of E4M3 codes: one for each block of
// rows x cols of it. A value is code * scale.
type blocks struct {
	scales     *Tensor
	rows, cols int // of a block
	across     int // blocks side by side
}

// fp8 reads a weight of E4M3 codes in any of the forms there are: scales for
// blocks as GLM-5-FP8 and DeepSeek have them (weight_scale_inv, which is a factor
// for all its name), for rows, or for the whole weight (weight_scale).
//
// Slices of it are BF16: each value is rounded to BF16's 8 bits, as transformers
// does for a model that it loads as BF16. Where scales are powers of two nothing is
// lost. See [Linear.Wide] for all of a value, and [Linear.Codes] and [Linear.Blocks]
// for what is stored.
func (c *Checkpoint) fp8(module string, w *Tensor) (Linear, error) {
	if len(w.Shape) != 2 {
		return Linear{}, fmt.Errorf("it has shape %v, not two dimensions", w.Shape)
	}
	l := Linear{Name: module, Format: kernels.BF16, Stored: kernels.FP8, Rows: w.Shape[0], Cols: w.Shape[1], data: w}
	name := module + ".weight_scale_inv"
	if !c.Has(name) {
		name = module + ".weight_scale"
	}
	s, err := c.Tensor(name)
	if err != nil {
		return Linear{}, fmt.Errorf("an FP8 weight needs weight_scale_inv or weight_scale, which is missing: the " +
			"checkpoint is incomplete")
	}
	switch s.DType {
	case F32, BF16, F16, E8M0:
	default:
		return Linear{}, fmt.Errorf("%s is %s: scales of FP8 weights are F32, BF16, F16 or %s", name, s.DType, E8M0)
	}
	b := blocks{scales: s, across: 1}
	height, width := c.quant.block[0], c.quant.block[1]
	if height == 0 {
		height, width = 128, 128
	}
	down, across := (l.Rows+height-1)/height, (l.Cols+width-1)/width
	switch n := s.Len(); {
	case len(s.Shape) == 2 && s.Shape[0] == down && s.Shape[1] == across:
		b.rows, b.cols, b.across = height, width, across
	case n == 1:
		b.rows, b.cols = l.Rows, l.Cols
	case n == l.Rows && s.Shape[0] == l.Rows:
		b.rows, b.cols = 1, l.Cols
	default:
		return Linear{}, fmt.Errorf("%s has shape %v: a weight of [%d, %d] has one scale, %d of rows, or [%d, %d] "+
			"of blocks of %d x %d", name, s.Shape, l.Rows, l.Cols, l.Rows, down, across, height, width)
	}
	l.blocks, l.scales = b, s
	return l, nil
}

// Codes returns an FP8 weight with one scale as it is stored, as a Linear whose
// slices are codes: nothing is rounded. It is false for any other weight.
func (l *Linear) Codes() (Linear, bool) {
	if l.Stored != kernels.FP8 || l.Format == kernels.FP8 || l.scales.Len() != 1 {
		return Linear{}, false
	}
	v, err := l.blocks.values()
	if err != nil {
		return Linear{}, false
	}
	out := *l
	out.Format, out.Global = kernels.FP8, v[0]
	return out, true
}

// Blocks returns an FP8 weight as it is stored, as a Linear whose slices are codes with
// a scale for each [kernels.ScaledColumns] of a row: their values are those of BF16
// slices, and take half the bytes. share is how many columns slices have, which begin
// at multiples of it. It is false for any other weight, and where scales change within
// columns that would share one.
func (l *Linear) Blocks(share int) (Linear, bool) {
	if l.Stored != kernels.FP8 || share < 1 {
		return Linear{}, false
	}
	for c := l.blocks.cols; c < l.Cols; c += l.blocks.cols {
		if c%share%kernels.ScaledColumns != 0 {
			return Linear{}, false
		}
	}
	out := *l
	out.Format = kernels.FP8B
	return out, true
}

// As returns an FP8 weight as a Linear whose slices are BF16, or float32: then nothing
// but the product with the scale is rounded. Any other weight is returned as it is.
func (l *Linear) As(f kernels.Format) Linear {
	out := *l
	if l.Stored == kernels.FP8 {
		out.Format = f
	}
	return out
}

// Wide is As float32.
func (l *Linear) Wide() Linear { return l.As(kernels.F32) }

// rowScales are the scales of rows [rowLo, rowHi) and columns [colLo, colHi), of each
// row one for each ScaledColumns.
func (b *blocks) rowScales(a kernels.Alloc, rowLo, rowHi, colLo, colHi int) ([]byte, error) {
	scales, err := b.values()
	if err != nil {
		return nil, err
	}
	out := a.Bytes(4 * (rowHi - rowLo) * kernels.ScaleColumns(colHi-colLo))
	at := 0
	for r := rowLo; r < rowHi; r++ {
		for c := colLo; c < colHi; c += kernels.ScaledColumns {
			binary.LittleEndian.PutUint32(out[at:], math.Float32bits(scales[r/b.rows*b.across+c/b.cols]))
			at += 4
		}
	}
	return out, nil
}

// values are the scales, in order.
func (b *blocks) values() ([]float32, error) {
	raw, err := b.scales.Bytes()
	if err != nil {
		return nil, err
	}
	v := make([]float32, b.scales.Len())
	b.scales.DType.decode(v, raw)
	for _, x := range v {
		if !(x >= 0) || math.IsInf(float64(x), 0) {
			return nil, fmt.Errorf("%s has the scale %g: a scale is positive and finite", b.scales.Name, x)
		}
	}
	return v, nil
}

// decode writes rows from rowLo on and columns from colLo to colHi of codes, all of
// whose rows begin at column colLo, as BF16 or, wide, as float32.
func (b *blocks) decode(dst, codes []byte, rowLo, colLo, colHi int, wide bool) error {
	scales, err := b.values()
	if err != nil {
		return err
	}
	width := colHi - colLo
	size := 2
	if wide {
		size = 4
	}
	tables := make([][256]uint32, b.across) // of one row of blocks
	made := -1
	for r := 0; r*width < len(codes); r++ {
		band := (rowLo + r) / b.rows
		if band != made {
			for k := colLo / b.cols; k*b.cols < colHi; k++ {
				table8(&tables[k], scales[band*b.across+k], wide)
			}
			made = band
		}
		line, out := codes[r*width:(r+1)*width], dst[size*r*width:]
		for at := 0; at < width; {
			k := (colLo + at) / b.cols
			t := &tables[k]
			end := min(width, (k+1)*b.cols-colLo)
			for ; wide && at < end; at++ {
				binary.LittleEndian.PutUint32(out[4*at:], t[line[at]])
			}
			for ; at < end; at++ {
				binary.LittleEndian.PutUint16(out[2*at:], uint16(t[line[at]]))
			}
		}
	}
	return nil
}

// table8 has the bits of every code's value at a scale.
func table8(t *[256]uint32, scale float32, wide bool) {
	for i := range t {
		if x := nvfp4.E4M3[i] * scale; wide {
			t[i] = math.Float32bits(x)
		} else {
			t[i] = uint32(roundBF16(x))
		}
	}
}

package checkpoint

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"

	"glmbatch/kernels"
	"glmbatch/kernels/nvfp4"
)

// Slice returns rows [rowLo, rowHi) and columns [colLo, colHi) in the weight's
// format. Of the file only those rows are read. The bytes are a view where the file
// is in memory and the part is contiguous there (whole rows of BF16, F32 or NVFP4).
// Columns of NVFP4 are sliced at multiples of 16, of FP8B as [Linear.Blocks] was told.
func (l *Linear) Slice(rowLo, rowHi, colLo, colHi int) (kernels.Matrix, error) {
	return l.SliceTo(nil, rowLo, rowHi, colLo, colHi)
}

// SliceTo is Slice with memory for what is read.
func (l *Linear) SliceTo(a kernels.Alloc, rowLo, rowHi, colLo, colHi int) (kernels.Matrix, error) {
	if err := l.inside(rowLo, rowHi, colLo, colHi); err != nil {
		return kernels.Matrix{}, err
	}
	var failed error
	part := func(t *Tensor, a kernels.Alloc, perRow, lo, hi int) []byte {
		b, err := t.part(a, rowLo, rowHi, perRow, lo, hi)
		failed = cmp.Or(failed, err)
		return b
	}
	var m kernels.Matrix
	switch {
	case l.Format == kernels.FP4:
		if colLo%nvfp4.Block != 0 || colHi%nvfp4.Block != 0 {
			return m, fmt.Errorf("columns %d to %d of %s: NVFP4 is sliced at multiples of %d", colLo, colHi, l.Name,
				nvfp4.Block)
		}
		m = kernels.Matrix{
			Data:   part(l.data, a, l.Cols/2, colLo/2, colHi/2),
			Scales: part(l.scales, a, l.Cols/nvfp4.Block, colLo/nvfp4.Block, colHi/nvfp4.Block),
			Global: l.Global, Input: l.Input,
		}
	case l.Format == kernels.FP8:
		m = kernels.Matrix{Data: part(l.data, a, l.Cols, colLo, colHi), Global: l.Global}
	case l.Format == kernels.FP8B:
		m.Data = part(l.data, a, l.Cols, colLo, colHi)
		if failed == nil {
			m.Scales, failed = l.blocks.rowScales(a, rowLo, rowHi, colLo, colHi)
		}
	case l.Stored == kernels.FP8:
		codes := part(l.data, nil, l.Cols, colLo, colHi)
		if failed == nil {
			size, wide := 2, l.Format == kernels.F32
			if wide {
				size = 4
			}
			m.Data = a.Bytes(size * len(codes))
			failed = l.blocks.decode(m.Data, codes, rowLo, colLo, colHi, wide)
		}
	default:
		size := int(sizes[l.data.DType])
		if l.data.DType == F16 {
			a = nil // it is widened
		}
		m.Data = part(l.data, a, l.Cols*size, colLo*size, colHi*size)
		if l.data.DType == F16 {
			m.Data = widen(m.Data)
		}
	}
	if failed != nil {
		return kernels.Matrix{}, failed
	}
	return m, nil
}

// readBytes bounds what is read of rows at once to take columns from.
const readBytes = 1 << 20

// part returns bytes [lo, hi) of each of some rows that are perRow bytes long.
func (t *Tensor) part(a kernels.Alloc, rowLo, rowHi, perRow, lo, hi int) ([]byte, error) {
	rows, whole := rowHi-rowLo, lo == 0 && hi == perRow
	memory := t.Data != nil || t.file.f == nil
	if memory && whole {
		return t.Data[rowLo*perRow : rowHi*perRow], nil
	}
	out := a.Bytes(rows * (hi - lo))
	if whole {
		return out, t.Read(out, int64(rowLo)*int64(perRow))
	}
	n := max(1, readBytes/max(perRow, 1)) // rows at once
	var b []byte
	if !memory {
		b = make([]byte, min(n, rows)*perRow)
	}
	at := 0
	for r := rowLo; r < rowHi; r += n {
		some := min(n, rowHi-r) * perRow
		if memory {
			b = t.Data[r*perRow:]
		} else if err := t.Read(b[:some], int64(r)*int64(perRow)); err != nil {
			return nil, err
		}
		for k := 0; k < some; k += perRow {
			at += copy(out[at:], b[k+lo:k+hi])
		}
	}
	return out, nil
}

// Float32 returns the values of rows [rowLo, rowHi).
func (l *Linear) Float32(rowLo, rowHi int) ([]float32, error) {
	if l.Format == kernels.FP8B {
		plain := l.As(kernels.BF16)
		return plain.Float32(rowLo, rowHi)
	}
	m, err := l.Slice(rowLo, rowHi, 0, l.Cols)
	if err != nil {
		return nil, err
	}
	v := make([]float32, (rowHi-rowLo)*l.Cols)
	switch l.Format {
	case kernels.FP4:
		nvfp4.Dequantize(v, m.Data, m.Scales, m.Global)
	case kernels.FP8:
		F8.decode(v, m.Data)
		for i := range v {
			v[i] *= m.Global
		}
	case kernels.BF16:
		BF16.decode(v, m.Data)
	default:
		F32.decode(v, m.Data)
	}
	return v, nil
}

// Bytes returns what the weight takes in its file, scales included.
func (l *Linear) Bytes() int64 {
	n := l.data.Size()
	if l.scales != nil {
		n += l.scales.Size()
	}
	if l.Format == kernels.FP4 {
		n += 4
	}
	return n
}

func (l *Linear) inside(rowLo, rowHi, colLo, colHi int) error {
	if rowLo < 0 || rowLo > rowHi || rowHi > l.Rows || colLo < 0 || colLo > colHi || colHi > l.Cols {
		return fmt.Errorf("rows %d to %d and columns %d to %d are outside %s [%d, %d]", rowLo, rowHi, colLo, colHi,
			l.Name, l.Rows, l.Cols)
	}
	return nil
}

// widen converts F16 to F32.
func widen(b []byte) []byte {
	out := make([]byte, 0, 2*len(b))
	for i := 0; i+1 < len(b); i += 2 {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(half(binary.LittleEndian.Uint16(b[i:]))))
	}
	return out
}

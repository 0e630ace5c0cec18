package checkpoint

import (
	"encoding/binary"
	"fmt"
	"math"

	"glmbatch/kernels"
	"glmbatch/kernels/nvfp4"
)

// Slice returns rows [rowLo, rowHi) and columns [colLo, colHi). Only that part
// of the file is touched. The bytes are a view of the file where the part is
// contiguous there (whole rows of BF16, F32 or NVFP4), else a copy. Columns of
// NVFP4 are sliced at multiples of 16.
func (l *Linear) Slice(rowLo, rowHi, colLo, colHi int) (kernels.Matrix, error) {
	return l.SliceTo(nil, rowLo, rowHi, colLo, colHi)
}

// SliceTo is Slice with memory for copies.
func (l *Linear) SliceTo(a kernels.Alloc, rowLo, rowHi, colLo, colHi int) (kernels.Matrix, error) {
	if err := l.inside(rowLo, rowHi, colLo, colHi); err != nil {
		return kernels.Matrix{}, err
	}
	if err := l.data.file.check(); err != nil {
		return kernels.Matrix{}, fmt.Errorf("reading %s: %w", l.data.Name, err)
	}
	part := func(b []byte, perRow, lo, hi int) []byte {
		if lo == 0 && hi == perRow {
			return b[rowLo*perRow : rowHi*perRow]
		}
		out := a.Bytes((rowHi - rowLo) * (hi - lo))
		at := 0
		for r := rowLo; r < rowHi; r++ {
			at += copy(out[at:], b[r*perRow+lo:r*perRow+hi])
		}
		return out
	}
	if l.Format == kernels.FP4 {
		if colLo%nvfp4.Block != 0 || colHi%nvfp4.Block != 0 {
			return kernels.Matrix{}, fmt.Errorf("columns %d to %d of %s: NVFP4 is sliced at multiples of %d", colLo, colHi, l.Name, nvfp4.Block)
		}
		if err := l.scales.file.check(); err != nil {
			return kernels.Matrix{}, fmt.Errorf("reading %s: %w", l.scales.Name, err)
		}
		return kernels.Matrix{
			Data:   part(l.data.Data, l.Cols/2, colLo/2, colHi/2),
			Scales: part(l.scales.Data, l.Cols/nvfp4.Block, colLo/nvfp4.Block, colHi/nvfp4.Block),
			Global: l.Global, Input: l.Input,
		}, nil
	}
	size := int(sizes[l.data.DType])
	b := part(l.data.Data, l.Cols*size, colLo*size, colHi*size)
	if l.data.DType == F16 {
		b = widen(b)
	}
	return kernels.Matrix{Data: b}, nil
}

// Float32 returns the values of rows [rowLo, rowHi).
func (l *Linear) Float32(rowLo, rowHi int) ([]float32, error) {
	m, err := l.Slice(rowLo, rowHi, 0, l.Cols)
	if err != nil {
		return nil, err
	}
	v := make([]float32, (rowHi-rowLo)*l.Cols)
	switch l.Format {
	case kernels.FP4:
		nvfp4.Dequantize(v, m.Data, m.Scales, m.Global)
	case kernels.BF16:
		BF16.decode(v, m.Data)
	default:
		F32.decode(v, m.Data)
	}
	return v, nil
}

// Bytes returns what the weight takes in its file, scales included.
func (l *Linear) Bytes() int64 {
	n := int64(len(l.data.Data))
	if l.scales != nil {
		n += int64(len(l.scales.Data)) + 4
	}
	return n
}

func (l *Linear) inside(rowLo, rowHi, colLo, colHi int) error {
	if rowLo < 0 || rowLo > rowHi || rowHi > l.Rows || colLo < 0 || colLo > colHi || colHi > l.Cols {
		return fmt.Errorf("rows %d to %d and columns %d to %d are outside %s [%d, %d]", rowLo, rowHi, colLo, colHi, l.Name, l.Rows, l.Cols)
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

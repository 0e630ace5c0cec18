package simd

import (
	"encoding/binary"
	"math"

	"glmbatch/kernels"
)

// Lanes is the number of output rows in a panel.
const Lanes = 16

const (
	fp4Header = 64
	fp4Block  = 144 // bytes of 16 rows by 16 columns
	fp4Codes  = 16  // where the codes begin in a block, after the scales

	fp8Columns = kernels.ScaledColumns // of a block of FP8B
	fp8Codes   = 4 * Lanes             // where its codes begin, after the rows' scales
	fp8Block   = fp8Codes + fp8Columns*Lanes

	maxSize = 1 << 28 // of rows and columns, so that no count of bytes overflows
)

// Weight is a view of one packed matrix.
type Weight struct {
	Format     kernels.Format
	Rows, Cols int
	Data       []byte // PackedBytes of them, in Pack's layout
}

// Panels is the number of panels.
func (w Weight) Panels() int { return (w.Rows + Lanes - 1) / Lanes }

// Global is the factor of the finished sums: the tensor's for FP4, else 1.
func (w Weight) Global() float32 {
	if w.Format != kernels.FP4 {
		return 1
	}
	return math.Float32frombits(binary.LittleEndian.Uint32(w.Data))
}

// Input is the input scale for [QuantA4]: the tensor's, or 1 where none is stored.
func (w Weight) Input() float32 {
	if w.Format != kernels.FP4 {
		return 1
	}
	if v := math.Float32frombits(binary.LittleEndian.Uint32(w.Data[4:])); v > 0 {
		return v
	}
	return 1
}

// panel returns the bytes of panels [p, p+n).
func (w Weight) panel(p, n int) []byte {
	size, off := panelBytes(w.Format, w.Cols), 0
	if w.Format == kernels.FP4 {
		off = fp4Header
	}
	off = checked(len(w.Data), off+p*size, n*size)
	return w.Data[off : off+n*size]
}

func panelBytes(f kernels.Format, cols int) int {
	switch f {
	case kernels.F32:
		return cols * 64
	case kernels.BF16:
		return (cols + 1) / 2 * 64
	case kernels.FP8B:
		return kernels.ScaleColumns(cols)*fp8Codes + cols*Lanes
	case kernels.FP4:
		return cols / 16 * fp4Block
	}
	return 0
}

// PackedBytes is the length of a packed matrix, a multiple of 64; 0 for a
// format that [Pack] does not know.
func PackedBytes(f kernels.Format, rows, cols int) int64 {
	n := int64((rows+Lanes-1)/Lanes) * int64(panelBytes(f, cols))
	if f == kernels.FP4 {
		n += fp4Header
	}
	return (n + 63) &^ 63
}

package simd

import (
	"encoding/binary"
	"fmt"
	"math"

	"glmbatch/kernels"
)

// Lanes is the number of output rows in a panel.
const Lanes = 16

const (
	fp4Header = 64
	fp4Block  = 144 // bytes of 16 rows by 16 columns

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

// Pack lays m out in dst, of at least PackedBytes. Rows are padded with zeros
// to a multiple of 16; FP4 needs columns in multiples of 16 and finite scales.
func Pack(dst []byte, f kernels.Format, rows, cols int, m kernels.Matrix) error {
	if rows < 1 || cols < 1 || rows > maxSize || cols > maxSize {
		return fmt.Errorf("pack %d x %d values: sizes must be 1..%d", rows, cols, maxSize)
	}
	if n := PackedBytes(f, rows, cols); int64(len(dst)) < n {
		return fmt.Errorf("pack %d x %d %s values: %d bytes for %d", rows, cols, f, len(dst), n)
	}
	want := kernels.WeightBytes(f, int64(rows), int64(cols))
	if f == kernels.FP4 {
		want -= int64(rows) * int64(cols) / 16 // scales are a slice of their own
	}
	if int64(len(m.Data)) != want {
		return fmt.Errorf("pack %d x %d %s values: have %d bytes of values, want %d", rows, cols, f, len(m.Data), want)
	}
	clear(dst)
	switch f {
	case kernels.F32:
		packF32(dst, rows, cols, m.Data)
	case kernels.BF16:
		packBF16(dst, rows, cols, m.Data)
	case kernels.FP4:
		return packFP4(dst, rows, cols, m)
	default:
		return fmt.Errorf("pack: format %q is not f32, bf16 or fp4", f)
	}
	return nil
}

func packF32(dst []byte, rows, cols int, src []byte) {
	for r := range rows {
		out := dst[r/Lanes*panelBytes(kernels.F32, cols)+r%Lanes*4:]
		for k := range cols {
			copy(out[k*64:k*64+4], src[(r*cols+k)*4:])
		}
	}
}

func packBF16(dst []byte, rows, cols int, src []byte) {
	for r := range rows {
		out := dst[r/Lanes*panelBytes(kernels.BF16, cols)+r%Lanes*4:]
		for k := range cols {
			copy(out[k/2*64+k%2*2:][:2], src[(r*cols+k)*2:])
		}
	}
}

func packFP4(dst []byte, rows, cols int, m kernels.Matrix) error {
	if cols%16 != 0 {
		return fmt.Errorf("pack %d x %d fp4 values: columns come in multiples of 16", rows, cols)
	}
	if len(m.Scales) != rows*cols/16 {
		return fmt.Errorf("pack %d x %d fp4 values: have %d scales, want %d", rows, cols, len(m.Scales), rows*cols/16)
	}
	binary.LittleEndian.PutUint32(dst, math.Float32bits(m.Global))
	binary.LittleEndian.PutUint32(dst[4:], math.Float32bits(m.Input))
	for r := range rows {
		out := dst[fp4Header+r/Lanes*panelBytes(kernels.FP4, cols):]
		for b := range cols / 16 {
			sf := m.Scales[r*(cols/16)+b]
			if sf&0x7f == 0x7f {
				return fmt.Errorf("pack fp4 values: the scale of row %d, columns %d.. is not a number", r, b*16)
			}
			block, src := out[b*fp4Block:], m.Data[(r*cols+b*16)/2:]
			block[r%Lanes] = sf
			binary.LittleEndian.PutUint32(block[16+r%Lanes*4:], spread(binary.LittleEndian.Uint32(src)))
			binary.LittleEndian.PutUint32(block[80+r%Lanes*4:], spread(binary.LittleEndian.Uint32(src[4:])))
		}
	}
	return nil
}

// spread moves nibbles 0..7 so that byte i has nibble i in its low half and
// nibble 4+i in its high half.
func spread(v uint32) uint32 {
	low, high := v&0xffff, v>>16
	low, high = (low|low<<8)&0x00ff00ff, (high|high<<8)&0x00ff00ff
	low, high = (low|low<<4)&0x0f0f0f0f, (high|high<<4)&0x0f0f0f0f
	return low | high<<4
}

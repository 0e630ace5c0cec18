package simd

import (
	"encoding/binary"
	"fmt"
	"math"

	"glmbatch/kernels"
)

// PackPanels lays panels [lo, hi) of m out in dst, of at least PackedBytes for all of
// them. Rows are padded with zeros to a multiple of 16; FP4 needs columns in multiples of
// 16 and finite scales. Ranges may be packed at once.
func PackPanels(dst []byte, f kernels.Format, rows, cols int, m kernels.Matrix, lo, hi int) error {
	if rows < 1 || cols < 1 || rows > maxSize || cols > maxSize {
		return fmt.Errorf("pack %d x %d values: sizes must be 1..%d", rows, cols, maxSize)
	}
	if n := PackedBytes(f, rows, cols); int64(len(dst)) < n {
		return fmt.Errorf("pack %d x %d %s values: %d bytes for %d", rows, cols, f, len(dst), n)
	}
	want := kernels.WeightBytes(f, int64(rows), int64(cols))
	switch f { // scales are a slice of their own
	case kernels.FP4:
		want -= int64(rows) * int64(cols) / 16
	case kernels.FP8B:
		want = int64(rows) * int64(cols)
	}
	if int64(len(m.Data)) != want {
		return fmt.Errorf("pack %d x %d %s values: have %d bytes of values, want %d", rows, cols, f, len(m.Data), want)
	}
	off := 0
	switch f {
	case kernels.F32, kernels.BF16:
	case kernels.FP8B:
		if n := 4 * rows * kernels.ScaleColumns(cols); len(m.Scales) != n {
			return fmt.Errorf("pack %d x %d fp8b values: have %d bytes of scales, want %d", rows, cols,
				len(m.Scales), n)
		}
	case kernels.FP4:
		if cols%16 != 0 {
			return fmt.Errorf("pack %d x %d fp4 values: columns come in multiples of 16", rows, cols)
		}
		if len(m.Scales) != rows*cols/16 {
			return fmt.Errorf("pack %d x %d fp4 values: have %d scales, want %d", rows, cols,
				len(m.Scales), rows*cols/16)
		}
		if off = fp4Header; lo == 0 {
			clear(dst[:off])
			binary.LittleEndian.PutUint32(dst, math.Float32bits(m.Global))
			binary.LittleEndian.PutUint32(dst[4:], math.Float32bits(m.Input))
		}
	default:
		return fmt.Errorf("pack: format %q is not f32, bf16, fp8b or fp4", f)
	}
	size, row := panelBytes(f, cols), len(m.Data)/rows
	for p := lo; p < hi; p++ {
		out, first := dst[off+p*size:][:size], p*Lanes
		n := min(Lanes, rows-first)
		if n < Lanes {
			clear(out)
		}
		src := m.Data[first*row : (first+n)*row]
		switch f {
		case kernels.F32, kernels.BF16:
			packDwords(out, src, n)
			continue
		case kernels.FP8B:
			packFP8(out, src, m.Scales[4*first*kernels.ScaleColumns(cols):], n, cols)
			continue
		}
		scales := m.Scales[first*cols/16 : (first+n)*cols/16]
		if i := notNumber(scales); i >= 0 {
			return fmt.Errorf("pack fp4 values: the scale of row %d, columns %d.. is not a number",
				first+i*16/cols, i*16%cols)
		}
		packFP4(out, src, scales, n, cols/16)
	}
	if end := off + hi*size; hi*Lanes >= rows {
		clear(dst[end:PackedBytes(f, rows, cols)])
	}
	return nil
}

// packRun is how many bytes of two rows are packed before those of the next: a
// cache line of each, and results that stay in the first cache.
const packRun = 64

// blank is what is packed beside an odd last row.
var blank [packRun]byte

// packDwords transposes rows of dwords, which are columns of F32 or pairs of
// columns of BF16: dword k of row r goes to dst[64k+4r:]. An odd last column of
// BF16 is paired with zero.
func packDwords(dst, src []byte, rows int) {
	const low = 1<<32 - 1
	size := len(src) / rows
	for at := 0; at < size; at += packRun {
		n := min(packRun, size-at)
		for r := 0; r < rows; r += 2 {
			a, b, out := src[r*size+at:][:n], blank[:n], dst[at*16+r*4:]
			if r+1 < rows {
				b = src[(r+1)*size+at:][:n]
			}
			for ; len(a) >= 8 && len(b) >= 8 && len(out) >= 72; a, b = a[8:], b[8:] {
				x, y := binary.LittleEndian.Uint64(a), binary.LittleEndian.Uint64(b)
				binary.LittleEndian.PutUint64(out, x&low|y<<32)
				binary.LittleEndian.PutUint64(out[64:], x>>32|y&^low)
				out = out[min(128, len(out)):]
			}
			if len(a) >= 4 {
				x, y := binary.LittleEndian.Uint32(a), binary.LittleEndian.Uint32(b)
				binary.LittleEndian.PutUint64(out, uint64(x)|uint64(y)<<32)
				a, b, out = a[4:], b[4:], out[min(64, len(out)):]
			}
			if len(a) > 0 {
				x, y := binary.LittleEndian.Uint16(a), binary.LittleEndian.Uint16(b)
				binary.LittleEndian.PutUint64(out, uint64(x)|uint64(y)<<32)
			}
		}
	}
}

// packFP4 packs one panel of so many rows and blocks.
func packFP4(dst, src, scales []byte, rows, blocks int) {
	const low = 1<<32 - 1
	for at := 0; at < blocks; at += packRun / 8 {
		n := min(packRun/8, blocks-at)
		for r := 0; r < rows; r += 2 {
			a, b, sa, sb := src[(r*blocks+at)*8:][:n*8], blank[:n*8], scales[r*blocks+at:][:n], blank[:n]
			if r+1 < rows {
				b, sb = src[((r+1)*blocks+at)*8:][:n*8], scales[(r+1)*blocks+at:][:n]
			}
			out := dst[at*fp4Block+r:]
			for i := range sa {
				binary.LittleEndian.PutUint16(out[i*fp4Block:], uint16(sa[i])|uint16(sb[i])<<8)
			}
			out = dst[at*fp4Block+fp4Codes+r*4:]
			for ; len(a) >= 8 && len(b) >= 8 && len(out) >= 72; a, b = a[8:], b[8:] {
				x, y := binary.LittleEndian.Uint64(a), binary.LittleEndian.Uint64(b)
				binary.LittleEndian.PutUint64(out, spread(x&low|y<<32))
				binary.LittleEndian.PutUint64(out[64:], spread(x>>32|y&^low))
				out = out[min(fp4Block, len(out)):]
			}
		}
	}
}

// packFP8 packs one panel of so many rows: of each block of columns the rows' scales,
// then column by column the rows' codes.
func packFP8(dst, src, scales []byte, rows, cols int) {
	blocks := kernels.ScaleColumns(cols)
	for b := range blocks {
		n := min(fp8Columns, cols-b*fp8Columns)
		for r := range rows {
			copy(dst[4*r:4*r+4], scales[4*(r*blocks+b):])
			out := dst[fp8Codes+r:]
			for j, c := range src[r*cols+b*fp8Columns:][:n] {
				out[j*Lanes] = c
			}
		}
		dst = dst[fp8Codes+n*Lanes:]
	}
}

// notNumber returns the index of the first E4M3 code that is not a number, or -1.
func notNumber(codes []byte) int {
	const sevens, ones, tops = 0x7f7f7f7f_7f7f7f7f, 0x01010101_01010101, 0x80808080_80808080
	for i := 0; i < len(codes); i += 8 {
		if i+8 <= len(codes) && (binary.LittleEndian.Uint64(codes[i:])&sevens+ones)&tops == 0 {
			continue
		}
		for j, c := range codes[i:min(i+8, len(codes))] {
			if c&0x7f == 0x7f {
				return i + j
			}
		}
	}
	return -1
}

// spread moves nibbles 0..7 of each dword so that byte i has nibble i in its low
// half and nibble 4+i in its high half.
func spread(v uint64) uint64 {
	low, high := v&0x0000ffff_0000ffff, v>>16&0x0000ffff_0000ffff
	low, high = (low|low<<8)&0x00ff00ff_00ff00ff, (high|high<<8)&0x00ff00ff_00ff00ff
	low, high = (low|low<<4)&0x0f0f0f0f_0f0f0f0f, (high|high<<4)&0x0f0f0f0f_0f0f0f0f
	return low | high<<4
}

package simd

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"glmbatch/kernels"
)

// unpack reads the documented layouts value by value.
func unpack(f kernels.Format, rows, cols int, packed []byte) kernels.Matrix {
	m := kernels.Matrix{Data: make([]byte, rows*cols*4)}
	switch f {
	case kernels.BF16:
		m.Data = m.Data[:rows*cols*2]
	case kernels.FP8B:
		m.Data, m.Scales = m.Data[:rows*cols], make([]byte, 4*rows*kernels.ScaleColumns(cols))
	case kernels.FP4:
		m.Data, m.Scales = m.Data[:rows*cols/2], make([]byte, rows*cols/16)
	}
	size := panelBytes(f, cols)
	for r := range rows {
		panel, lane := packed[r/16*size:], r%16
		for k := range cols {
			switch f {
			case kernels.F32:
				copy(m.Data[(r*cols+k)*4:], panel[k*64+lane*4:][:4])
			case kernels.BF16:
				copy(m.Data[(r*cols+k)*2:], panel[k/2*64+lane*4+k%2*2:][:2])
			case kernels.FP8B:
				block := panel[k/128*(64+128*16):]
				copy(m.Scales[4*(r*kernels.ScaleColumns(cols)+k/128):], block[4*lane:][:4])
				m.Data[r*cols+k] = block[64+k%128*16+lane]
			case kernels.FP4:
				block := panel[fp4Header+k/16*fp4Block:]
				m.Scales[(r*cols+k)/16] = block[lane]
				code := block[16+k%16/8*64+lane*4+k%4] >> (k % 8 / 4 * 4) & 15
				m.Data[(r*cols+k)/2] |= code << (k % 2 * 4)
			}
		}
	}
	return m
}

// TestPackLayout packs over old bytes, in two ranges, and reads all back.
func TestPackLayout(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, d := range [][2]int{{1, 1}, {1, 16}, {2, 3}, {15, 31}, {16, 32}, {17, 33}, {33, 128}, {40, 160},
		{48, 250}, {64, 272}} {
		for _, f := range weightFormats {
			rows, cols := d[0], d[1]
			if f == kernels.FP4 && cols%16 != 0 {
				continue
			}
			m, _ := matrix(rng, f, rows, cols)
			m.Input = 3
			once := bytes.Repeat([]byte{0xa5}, int(PackedBytes(f, rows, cols)))
			parts := slices.Clone(once)
			panels := Weight{Rows: rows}.Panels()
			for _, err := range []error{packAll(once, f, rows, cols, m),
				PackPanels(parts, f, rows, cols, m, panels/2, panels),
				PackPanels(parts, f, rows, cols, m, 0, panels/2)} {
				if err != nil {
					t.Fatal(err)
				}
			}
			if panels == 1 { // the first half was empty, and so was the header's range
				parts = slices.Clone(once)
			}
			got := unpack(f, rows, cols, once)
			if !bytes.Equal(got.Data, m.Data) || !bytes.Equal(got.Scales, m.Scales) {
				t.Errorf("%s [%d, %d]: other values came back", f, rows, cols)
			}
			if !bytes.Equal(once, parts) {
				t.Errorf("%s [%d, %d]: other bytes in two ranges", f, rows, cols)
			}
			n, off := 0, 0
			if f == kernels.FP4 {
				off = fp4Header
				if w := (Weight{Format: f, Data: once}); w.Global() != m.Global || w.Input() != m.Input {
					t.Errorf("%s: global %v, input %v", f, w.Global(), w.Input())
				}
			}
			for _, b := range once[off:] { // padding is zero: no more bytes than the matrix has are not
				n += min(1, int(b))
			}
			for _, b := range append(got.Data, got.Scales...) {
				n -= min(1, int(b))
			}
			if f != kernels.FP4 && n != 0 {
				t.Errorf("%s [%d, %d]: %d bytes of padding are not zero", f, rows, cols, n)
			}
		}
	}
}

func BenchmarkPack(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, d := range [][2]int{{768, 1536}, {256, 4096}, {1536, 128}} {
		for _, f := range weightFormats {
			m := kernels.Matrix{Global: 1, Data: make([]byte, kernels.WeightBytes(f, int64(d[0]), int64(d[1])))}
			switch f {
			case kernels.FP4:
				m.Data, m.Scales = m.Data[:d[0]*d[1]/2], make([]byte, d[0]*d[1]/16)
			case kernels.FP8B:
				m.Data, m.Scales = m.Data[:d[0]*d[1]], make([]byte, 4*d[0]*kernels.ScaleColumns(d[1]))
			}
			for i := 0; i < len(m.Data); i += 8 {
				binary.LittleEndian.PutUint64(m.Data[i:], rng.Uint64())
			}
			dst := make([]byte, PackedBytes(f, d[0], d[1]))
			b.Run(fmt.Sprintf("%dx%d/%s", d[0], d[1], f), func(b *testing.B) {
				best(b, float64(len(m.Data)+len(m.Scales)), "GB/s", func() {
					if err := packAll(dst, f, d[0], d[1], m); err != nil {
						b.Fatal(err)
					}
				})
			})
		}
	}
}

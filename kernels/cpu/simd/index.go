package simd

import (
	"encoding/binary"
	"math"

	"glmbatch/kernels"
)

// IndexScores computes dst[i] = Σ over heads h of scale·hw[h]·max(0, q[h] · k)
// for the keys k at slots of an indexer's cache. q is [heads, dim], hw [heads];
// heads are added in their order.
func IndexScores(dst, q []float32, heads, dim int, hw []float32, scale float32, f kernels.Format, cache []byte, slots []int32, s *Scratch) {
	active.indexScores(dst, q, heads, dim, hw, scale, f, cache, slots, s)
}

func (l *level) indexScores(dst, q []float32, heads, dim int, hw []float32, scale float32, f kernels.Format, cache []byte, slots []int32, s *Scratch) {
	row := pad16(dim)
	s.rows, s.q, s.p = grow(&s.rows, chunk*row), grow(&s.q, heads*row), grow(&s.p, heads*chunk)
	clear(s.rows[:chunk*row])
	for h := range heads {
		n := copy(s.q[h*row:], q[h*dim:(h+1)*dim])
		clear(s.q[h*row+n : (h+1)*row])
	}
	for at := 0; at < len(slots); at += chunk {
		n := min(chunk, len(slots)-at)
		for i, slot := range slots[at : at+n] {
			l.key(s.rows[i*row:i*row+dim], f, cache, int(slot))
		}
		l.dots(&s.p[0], chunk*4, &s.q[0], row*4, &s.rows[0], row*4, heads, (n+3)&^3, row)
		out := dst[at : at+n]
		clear(out)
		for h := range heads {
			l.reluAxpy(out, s.p[h*chunk:h*chunk+n], scale*hw[h])
		}
	}
}

// key decodes one key of an indexer's cache.
func (l *level) key(dst []float32, f kernels.Format, cache []byte, slot int) {
	dim := len(dst)
	size := kernels.IndexEntry(f, dim)
	switch f {
	case kernels.F32:
		l.decodeF32(dst, cache[slot*size:(slot+1)*size])
	case kernels.BF16:
		l.decodeBF16(dst, cache[slot*size:(slot+1)*size])
	case kernels.FP8:
		page := cache[slot/kernels.PageTokens*kernels.PageTokens*size:][:kernels.PageTokens*size]
		i := slot % kernels.PageTokens
		scale := binary.LittleEndian.Uint32(page[kernels.PageTokens*dim+i*4:])
		l.decodeE4M3(dst, page[i*dim:(i+1)*dim], math.Float32frombits(scale))
	}
}

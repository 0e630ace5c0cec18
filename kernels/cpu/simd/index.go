package simd

import (
	"encoding/binary"
	"math"
	"unsafe"

	"glmbatch/kernels"
)

// IndexScores computes dst[i] = Σ over heads h of scale·hw[h]·max(0, q[h] · k)
// for the keys k at slots of an indexer's cache. q is [heads, dim], hw [heads];
// heads are added in their order. Keys that the call before decoded, of the same first
// slots, are there still; see Scratch.Forget.
func IndexScores(dst, q []float32, heads, dim int, hw []float32, scale float32, f kernels.Format, cache []byte,
	slots []int32, s *Scratch) {
	active.indexScores(dst, q, heads, dim, hw, scale, f, cache, slots, s)
}

func (l *level) indexScores(dst, q []float32, heads, dim int, hw []float32, scale float32, f kernels.Format,
	cache []byte, slots []int32, s *Scratch) {
	row := pad16(dim)
	s.q, s.p = grow(&s.q, heads*row), grow(&s.p, heads*chunk)
	l.keysOf(f, cache, dim, slots, s)
	for h := range heads {
		n := copy(s.q[h*row:], q[h*dim:(h+1)*dim])
		clear(s.q[h*row+n : (h+1)*row])
	}
	for at := 0; at < len(slots); at += chunk {
		n := min(chunk, len(slots)-at)
		l.dots(&s.p[0], chunk*4, &s.q[0], row*4, &s.keys[at*row], row*4, heads, (n+3)&^3, row)
		out := dst[at : at+n]
		clear(out)
		for h := range heads {
			l.reluAxpy(out, s.p[h*chunk:h*chunk+n], scale*hw[h])
		}
	}
}

// keysOf sees to it that s.keys are the keys at slots, rows of padded length.
func (l *level) keysOf(f kernels.Format, cache []byte, dim int, slots []int32, s *Scratch) {
	row, have := pad16(dim), 0
	if from := (keysFrom{unsafe.SliceData(cache), f, dim}); s.from != from {
		s.from, s.slots = from, s.slots[:0]
	}
	for have < min(len(slots), len(s.slots)) && slots[have] == s.slots[have] {
		have++
	}
	if have == len(slots) {
		return
	}
	if need := (len(slots) + 3) / 4 * 4 * row; cap(s.keys) < need { // rows are read by fours
		s.keys, have = make([]float32, 2*need), 0
	}
	s.keys = s.keys[:cap(s.keys)]
	for i, slot := range slots[have:] {
		key := s.keys[(have+i)*row:][:row]
		clear(key[dim:])
		l.key(key[:dim], f, cache, int(slot))
	}
	s.slots = append(s.slots[:have], slots[have:]...)
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

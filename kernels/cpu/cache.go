package cpu

import (
	"encoding/binary"
	"math"

	"glmbatch/kernels"
	"glmbatch/kernels/cpu/simd"
)

// latentWrite norms and rotates rows [latent K | rope] and writes them into the
// latent cache's slots.
func latentWrite(f kernels.Format) work {
	return func(x *frame, lo, hi int) error {
		k, wide := int(x.K), int(x.K+x.Rope)
		in, w, pos, slots := x.rows(0, x.M, x.K+x.Rope), x.vector(1, x.K), x.ints(3, x.M), x.ints(4, x.M)
		cache, size := x.bytes(5, x.rank), kernels.LatentEntry(f, k, int(x.Rope))
		if x.err != nil {
			return x.err
		}
		entry := x.s.floats(0, wide)
		for m := lo; m < hi; m++ {
			if s := slots[m]; s < 0 || int(s) >= slotsOf(cache, size) {
				x.fail(4, "slot %d of row %d is not one of %d", s, m, slotsOf(cache, size))
				return x.err
			}
			a := x.angles(2, pos[m])
			if a == nil {
				return x.err
			}
			src := row(in, m, wide)
			simd.RMSNorm(entry[:k], src[:k], w, x.scalar(0))
			copy(entry[k:], src[k:])
			rotate(entry[k:], a)
			encodeLatent(cache[int(slots[m])*size:][:size], entry, k, f)
		}
		return nil
	}
}

func encodeLatent(dst []byte, entry []float32, k int, f kernels.Format) {
	switch f {
	case kernels.F32:
		putFloats(dst, entry)
	case kernels.BF16:
		simd.EncodeBF16(dst, entry)
	case kernels.FP8:
		scales := dst[k:]
		for i := 0; i < k; i += 128 {
			part := entry[i:min(i+128, k)]
			s := e4m3Scale(part)
			simd.EncodeE4M3(dst[i:i+len(part)], part, s)
			binary.LittleEndian.PutUint32(scales[i/128*4:], math.Float32bits(s))
		}
		simd.EncodeBF16(scales[(k+127)/128*4:], entry[k:])
	}
}

// indexWrite norms and rotates rows and writes them into the indexer's cache.
func indexWrite(f kernels.Format) work {
	return func(x *frame, lo, hi int) error {
		k := int(x.K)
		in, w, b, pos, slots := x.rows(0, x.M, x.K), x.vector(1, x.K), x.vector(2, x.K), x.ints(4, x.M), x.ints(5, x.M)
		cache, size := x.bytes(6, x.rank), kernels.IndexEntry(f, k)
		if x.err == nil && x.Rope > x.K {
			x.fail(3, "%d rotary values of %d", x.Rope, x.K)
		}
		if x.err != nil {
			return x.err
		}
		key := x.s.floats(0, k)
		for m := lo; m < hi; m++ {
			if s := slots[m]; s < 0 || int(s) >= slotsOf(cache, size) {
				x.fail(5, "slot %d of row %d is not one of %d", s, m, slotsOf(cache, size))
				return x.err
			}
			a := x.angles(3, pos[m])
			if a == nil {
				return x.err
			}
			layerNorm(key, row(in, m, k), w, b, x.scalar(0))
			rotate(key[:x.Rope], a)
			encodeKey(cache, int(slots[m]), size, key, f)
		}
		return nil
	}
}

func encodeKey(cache []byte, slot, size int, key []float32, f kernels.Format) {
	switch f {
	case kernels.F32:
		putFloats(cache[slot*size:][:size], key)
	case kernels.BF16:
		simd.EncodeBF16(cache[slot*size:][:size], key)
	case kernels.FP8:
		page := cache[slot/kernels.PageTokens*kernels.PageTokens*size:][:kernels.PageTokens*size]
		i, s := slot%kernels.PageTokens, e4m3Scale(key)
		simd.EncodeE4M3(page[i*len(key):(i+1)*len(key)], key, s)
		binary.LittleEndian.PutUint32(page[kernels.PageTokens*len(key)+4*i:], math.Float32bits(s))
	}
}

// e4m3Scale brings the largest value to E4M3's largest, 448.
func e4m3Scale(v []float32) float32 {
	const smallest = 0x1p-126
	return max(simd.AbsMax(v)/448, smallest)
}

func putFloats(dst []byte, v []float32) {
	for i, f := range v {
		binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(f))
	}
}

// slotsOf returns the slots of a cache: those of its whole pages.
func slotsOf(cache []byte, entry int) int {
	return len(cache) / (entry * kernels.PageTokens) * kernels.PageTokens
}

// pageTable is the pages argument: a row of page numbers for each sequence.
type pageTable struct {
	intRows
	count int // pages in the cache
}

func (x *frame) pageTable(arg int, cache []byte, entry int) pageTable {
	b := x.bytes(arg, x.rank)
	stride := int(x.call.Args[arg].Pitch) / 4
	if stride == 0 {
		stride = len(b) / 4 // one sequence
	}
	if x.err == nil && (!aligned(b, 4) || stride <= 0) {
		x.fail(arg, "%d bytes, aligned to 4, with a pitch of %d are no page table", len(b), x.call.Args[arg].Pitch)
	}
	if x.err != nil {
		return pageTable{}
	}
	return pageTable{intRows{ints(b), stride}, slotsOf(cache, entry) / kernels.PageTokens}
}

// pagesOf returns the pages of a sequence up to position pos, all in the cache.
func (x *frame) pagesOf(arg int, t pageTable, seq, pos int32) []int32 {
	need := int(pos)/kernels.PageTokens + 1
	if seq < 0 || pos < 0 || need > t.stride || int64(seq)*int64(t.stride)+int64(need) > int64(len(t.data)) {
		x.fail(arg, "no pages for position %d of sequence %d", pos, seq)
		return nil
	}
	ps := t.data[int(seq)*t.stride:][:need]
	for _, p := range ps {
		if p < 0 || int(p) >= t.count {
			x.fail(arg, "page %d of sequence %d is not one of %d", p, seq, t.count)
			return nil
		}
	}
	return ps
}

// slotAt returns the slot of a position.
func slotAt(pages []int32, pos int) int32 {
	return pages[pos/kernels.PageTokens]*kernels.PageTokens + int32(pos%kernels.PageTokens)
}

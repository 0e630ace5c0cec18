package kerneltest

import (
	"encoding/binary"
	"math"

	"glmbatch/kernels"
)

// cache reads and writes cache entries by the layouts that package kernels documents.
type cache struct {
	f      kernels.Format
	index  bool // the indexer's, else the latent
	latent int  // values with E4M3 scales of their own for each 128; of the index: all
	width  int  // values of an entry
	data   []byte
}

// cacheOf returns the cache that an example's kernel works on, on a rank.
func (e *example) cacheOf(rank int) cache {
	c := cache{f: e.k.Format, latent: int(e.d.K)}
	switch e.k.Op {
	case "index_write", "index_logits":
		c.index, c.width = true, int(e.d.K)
	default:
		c.width = int(e.d.K + e.d.Rope)
	}
	for _, a := range e.args {
		if a.Name == "cache" {
			c.data = a.on(rank)
		}
	}
	return c
}

func (c cache) entry() int {
	if c.index {
		return kernels.IndexEntry(c.f, c.width)
	}
	return kernels.LatentEntry(c.f, c.latent, c.width-c.latent)
}

// place returns where an FP8 entry's values, its scales and its rotary key are.
func (c cache) place(slot int) (values, scales, rotary []byte) {
	if c.index {
		page := c.data[slot/kernels.PageTokens*kernels.PageTokens*c.entry():]
		i := slot % kernels.PageTokens
		return page[i*c.width : (i+1)*c.width], page[kernels.PageTokens*c.width+4*i:][:4], nil
	}
	e := c.data[slot*c.entry():][:c.entry()]
	n := (c.latent + 127) / 128 * 4
	return e[:c.latent], e[c.latent:][:n], e[c.latent+n:]
}

// get decodes the entry at a slot.
func (c cache) get(slot int) []float64 {
	v := make([]float64, c.width)
	if c.f == kernels.FP8 {
		values, scales, rotary := c.place(slot)
		for i, b := range values {
			s := float32At(scales, 0)
			if !c.index {
				s = float32At(scales, i/128)
			}
			v[i] = e4m3[b] * float64(s)
		}
		for i := range len(rotary) / 2 {
			v[c.latent+i] = bf16(rotary[2*i:])
		}
		return v
	}
	b := c.data[slot*c.entry():]
	for i := range v {
		if c.f == kernels.BF16 {
			v[i] = bf16(b[2*i:])
		} else {
			v[i] = float64(float32At(b, i))
		}
	}
	return v
}

// put encodes an entry, not too carefully: only tests' inputs are made by it.
func (c cache) put(slot int, v []float64) {
	if c.f != kernels.FP8 {
		b := c.data[slot*c.entry():]
		for i, x := range v {
			if c.f == kernels.BF16 {
				putBF16(b[2*i:], x)
			} else {
				binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(float32(x)))
			}
		}
		return
	}
	values, scales, rotary := c.place(slot)
	for i := range len(scales) / 4 {
		binary.LittleEndian.PutUint32(scales[4*i:], math.Float32bits(float32(slot%7+1)/64))
	}
	for i := range values {
		values[i] = byte(int(v[i]*8)&0x80) | byte(int(math.Abs(v[i])*20)&0x3f)
	}
	for i := range len(rotary) / 2 {
		putBF16(rotary[2*i:], v[c.latent+i])
	}
}

// bytes returns what the entry at a slot occupies.
func (c cache) bytes(slot int) []byte {
	if c.f == kernels.FP8 {
		values, scales, rotary := c.place(slot)
		return append(append(append([]byte(nil), values...), scales...), rotary...)
	}
	return c.data[slot*c.entry():][:c.entry()]
}

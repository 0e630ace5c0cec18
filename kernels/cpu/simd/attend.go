package simd

import (
	"encoding/binary"
	"math"

	"glmbatch/kernels"
)

// chunk is the number of cache entries that attention decodes at a time. Sums
// are rescaled between chunks, so it is part of what fixes a result's bits.
const chunk = 32

// Cache is a view of one layer's latent cache, in the layout that package
// kernels documents.
type Cache struct {
	Format       kernels.Format
	Data         []byte
	Latent, Rope int // values of an entry
}

// Attend computes one row of latent attention: for each head the softmax of
// scale·(q · entry) over the entries at slots, times their latents. q is
// [heads, latent+rope], o is [heads, latent]. Without slots o is zero.
func Attend(o, q []float32, heads int, scale float32, c Cache, slots []int32, s *Scratch) {
	active.attend(o, q, heads, scale, c, slots, s)
}

// Entry decodes the entry at a slot into its latent and rotary values.
func Entry(dst []float32, c Cache, slot int) { active.entry(dst, c, slot) }

func (l *level) attend(o, q []float32, heads int, scale float32, c Cache, slots []int32, s *Scratch) {
	width := c.Latent + c.Rope
	row := pad16(width) // of a decoded entry and of a query
	acc := pad16(c.Latent)
	s.rows, s.q, s.o = grow(&s.rows, chunk*row), grow(&s.q, heads*row), grow(&s.o, heads*acc)
	s.p, s.max, s.sum = grow(&s.p, heads*chunk), grow(&s.max, heads), grow(&s.sum, heads)
	clear(s.rows[:chunk*row])
	for h := range heads {
		n := copy(s.q[h*row:], q[h*width:(h+1)*width])
		clear(s.q[h*row+n : (h+1)*row])
		s.max[h], s.sum[h] = float32(math.Inf(-1)), 0
	}
	clear(s.o[:heads*acc])
	s.x, s.y = grow(&s.x, heads), grow(&s.y, heads)
	for h := range heads {
		s.x[h], s.y[h] = int64(h)*chunk*4, int64(h*acc)*4
	}
	for at := 0; at < len(slots); at += chunk {
		n := min(chunk, len(slots)-at)
		for i, slot := range slots[at : at+n] {
			l.entry(s.rows[i*row:], c, int(slot))
		}
		l.dots(&s.p[0], chunk*4, &s.q[0], row*4, &s.rows[0], row*4, heads, (n+3)&^3, row)
		for h := range heads {
			l.soften(s, h, n, acc, scale)
		}
		for h := 0; h < heads; h += l.rows {
			tile := l.tile[min(l.rows, heads-h)-1]
			for j := 0; j < acc; j += Lanes {
				tile(&s.o[j], &s.y[h], &s.p[0], &s.x[h], &s.rows[j], row*4, n, 1, 1, 1)
			}
		}
	}
	for h := range heads {
		inv := float32(0)
		if s.sum[h] > 0 {
			inv = 1 / s.sum[h]
		}
		out := o[h*c.Latent : (h+1)*c.Latent]
		copy(out, s.o[h*acc:])
		l.scale(out, inv)
	}
}

// soften turns head h's n dot products into weights below the running maximum,
// and rescales the head's sums when that rises.
func (l *level) soften(s *Scratch, h, n, acc int, scale float32) {
	p := s.p[h*chunk : h*chunk+n]
	l.scale(p, scale)
	if top := l.maximum(p); top > s.max[h] {
		fall := expf(s.max[h] - top)
		s.max[h], s.sum[h] = top, s.sum[h]*fall
		l.scale(s.o[h*acc:(h+1)*acc], fall)
	}
	s.sum[h] += l.expSum(p, p, s.max[h])
}

// entry decodes one cache entry.
func (l *level) entry(dst []float32, c Cache, slot int) {
	size := kernels.LatentEntry(c.Format, c.Latent, c.Rope)
	src := c.Data[slot*size : (slot+1)*size]
	dst = dst[:c.Latent+c.Rope]
	switch c.Format {
	case kernels.F32:
		l.decodeF32(dst, src)
	case kernels.BF16:
		l.decodeBF16(dst, src)
	case kernels.FP8:
		scales := src[c.Latent:]
		for i := 0; i < c.Latent; i += 128 {
			end := min(i+128, c.Latent)
			l.decodeE4M3(dst[i:end], src[i:end], math.Float32frombits(binary.LittleEndian.Uint32(scales[i/128*4:])))
		}
		l.decodeBF16(dst[c.Latent:], scales[(c.Latent+127)/128*4:])
	}
}

func pad16(n int) int { return (n + 15) &^ 15 }

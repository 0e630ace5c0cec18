package simd

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"glmbatch/kernels"
	"pgregory.net/rapid"
)

var cacheFormats = []kernels.Format{kernels.F32, kernels.BF16, kernels.FP8}

// latentCache is a cache of random entries and their values.
func latentCache(rng *rand.Rand, f kernels.Format, latent, rope, slots int) (Cache, [][]float64) {
	c := Cache{Format: f, Latent: latent, Rope: rope}
	values := make([][]float64, slots)
	for s := range values {
		e := normal(rng, latent+rope)
		size := len(c.Data)
		switch f {
		case kernels.F32:
			for _, v := range e {
				c.Data = binary.LittleEndian.AppendUint32(c.Data, math.Float32bits(v))
			}
		case kernels.BF16:
			for i, v := range e {
				c.Data = binary.LittleEndian.AppendUint16(c.Data, toBF16(v))
				e[i] = fromBF16(toBF16(v))
			}
		case kernels.FP8:
			var scales []float32
			for i := range latent {
				if i%128 == 0 {
					scales = append(scales, float32(rng.Float64()+.1))
				}
				code := toE4M3(e[i] / scales[i/128])
				c.Data = append(c.Data, code)
				e[i] = e4m3[code] * scales[i/128]
			}
			for _, v := range scales {
				c.Data = binary.LittleEndian.AppendUint32(c.Data, math.Float32bits(v))
			}
			for i, v := range e[latent:] {
				c.Data = binary.LittleEndian.AppendUint16(c.Data, toBF16(v))
				e[latent+i] = fromBF16(toBF16(v))
			}
		}
		if n := len(c.Data) - size; n != kernels.LatentEntry(f, latent, rope) {
			panic("the test's entry has another size than the package's")
		}
		for _, v := range e {
			values[s] = append(values[s], float64(v))
		}
	}
	return c, values
}

func TestAttend(t *testing.T) {
	eachLevel(t, func(t *testing.T, l *level) {
		rapid.Check(t, func(t *rapid.T) {
			rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 7))
			f := rapid.SampledFrom(cacheFormats).Draw(t, "format")
			latent, rope, heads := rapid.IntRange(1, 200).Draw(t, "latent"), rapid.IntRange(0, 40).Draw(t,
				"rope"), rapid.IntRange(1, 20).Draw(t, "heads")
			c, values := latentCache(rng, f, latent, rope, 70)
			width := latent + rope
			q, scale := normal(rng, heads*width), float32(1/math.Sqrt(float64(width)))*rapid.Float32Range(.5,
				20).Draw(t, "sharpness")
			slots := make([]int32, rapid.IntRange(0, 150).Draw(t, "slots"))
			for i := range slots {
				slots[i] = int32(rng.IntN(len(values)))
			}
			o, s := make([]float32, heads*latent), new(Scratch)
			l.attend(o, q, heads, scale, c, slots, s)
			best := make([]float32, len(o))
			levels()[0].attend(best, q, heads, scale, c, slots, new(Scratch))
			sameBits(t, "the best level", best, o)
			for h := range heads {
				scores, top, sum := make([]float64, len(slots)), math.Inf(-1), 0.
				for i, slot := range slots {
					for k, v := range values[slot] {
						scores[i] += float64(q[h*width+k]) * v * float64(scale)
					}
					top = max(top, scores[i])
				}
				want, size := make([]float64, latent), 0.
				for i := range scores {
					scores[i] = math.Exp(scores[i] - top)
					sum += scores[i]
				}
				for i, slot := range slots {
					for k := range want {
						want[k] += scores[i] / sum * values[slot][k]
						size = max(size, math.Abs(values[slot][k]))
					}
				}
				for k, v := range want {
					if diff := math.Abs(float64(o[h*latent+k]) - v); !(diff <= 2e-5*size) {
						t.Fatalf("head %d, value %d: %v, want %v", h, k, o[h*latent+k], v)
					}
				}
			}
			// One head alone has the same bits, and so has a call with used memory.
			h := rapid.IntRange(0, heads-1).Draw(t, "head")
			alone := make([]float32, latent)
			l.attend(alone, q[h*width:(h+1)*width], 1, scale, c, slots, s)
			sameBits(t, "a head alone", alone, o[h*latent:])
		})
	})
}

func TestIndexScores(t *testing.T) {
	eachLevel(t, func(t *testing.T, l *level) {
		rapid.Check(t, func(t *rapid.T) {
			rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 8))
			f := rapid.SampledFrom(cacheFormats).Draw(t, "format")
			dim, heads, pages := rapid.IntRange(1, 140).Draw(t, "dim"), rapid.IntRange(1, 9).Draw(t, "heads"), 3
			keys := normal(rng, pages*kernels.PageTokens*dim)
			cache := make([]byte, pages*kernels.PageTokens*kernels.IndexEntry(f, dim))
			for i, v := range keys {
				slot, k := i/dim, i%dim
				switch f {
				case kernels.F32:
					binary.LittleEndian.PutUint32(cache[4*i:], math.Float32bits(v))
				case kernels.BF16:
					binary.LittleEndian.PutUint16(cache[2*i:], toBF16(v))
					keys[i] = fromBF16(toBF16(v))
				case kernels.FP8:
					page := cache[slot/64*64*(dim+4):]
					scale := float32(slot+1) / 50
					binary.LittleEndian.PutUint32(page[64*dim+slot%64*4:], math.Float32bits(scale))
					page[slot%64*dim+k] = toE4M3(v / scale)
					keys[i] = e4m3[toE4M3(v/scale)] * scale
				}
			}
			q, hw := normal(rng, heads*dim), normal(rng, heads)
			slots := make([]int32, rapid.IntRange(0, 100).Draw(t, "slots"))
			for i := range slots {
				slots[i] = int32(rng.IntN(pages * kernels.PageTokens))
			}
			got, s := make([]float32, len(slots)), new(Scratch)
			l.indexScores(got, q, heads, dim, hw, .25, f, cache, slots, s)
			best := make([]float32, len(slots))
			levels()[0].indexScores(best, q, heads, dim, hw, .25, f, cache, slots, new(Scratch))
			sameBits(t, "the best level", best, got)
			for i, slot := range slots {
				want, size := 0., 0.
				for h := range heads {
					dot := 0.
					for k := range dim {
						v := float64(q[h*dim+k]) * float64(keys[int(slot)*dim+k])
						dot += v
						size += math.Abs(v * float64(hw[h]) * .25)
					}
					want += max(0, dot) * float64(hw[h]) * .25
				}
				if diff := math.Abs(float64(got[i]) - want); !(diff <= 2e-6*size) {
					t.Fatalf("score %d: %v, want %v", i, got[i], want)
				}
			}
			// Scores of a part of the slots have the same bits.
			if len(slots) > 0 {
				lo := rapid.IntRange(0, len(slots)-1).Draw(t, "lo")
				part := make([]float32, len(slots)-lo)
				l.indexScores(part, q, heads, dim, hw, .25, f, cache, slots[lo:], s)
				sameBits(t, "a part of the slots", part, got[lo:])
			}
		})
	})
}

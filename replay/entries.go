package replay

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"glmbatch/engine/glm5"
	"glmbatch/kernels"
	"glmbatch/kernels/nvfp4"
)

// layout says how a page of one cache is laid out; package kernels documents it.
type layout struct {
	f            kernels.Format
	latent, rope int // values of an entry; the indexer's has no rope here
	index        bool
}

func layoutOf(m *glm5.Model, cache string, f kernels.Format) layout {
	c := &m.Config
	if cache == glm5.RegionIndex {
		return layout{f, c.IndexHeadDim, 0, true}
	}
	return layout{f, c.KVLoRA, c.QKRope, false}
}

func (l layout) entry() int {
	if l.index {
		return kernels.IndexEntry(l.f, l.latent)
	}
	return kernels.LatentEntry(l.f, l.latent, l.rope)
}

func (l layout) page() int { return kernels.PageTokens * l.entry() }

// parts returns where entry i of an FP8 page has its codes, scales and rotary key.
func (l layout) parts(page []byte, i int) (codes, scales, rotary []byte) {
	if l.index {
		return page[i*l.latent:][:l.latent], page[kernels.PageTokens*l.latent+4*i:][:4], nil
	}
	e := page[i*l.entry():][:l.entry()]
	n := (l.latent + 127) / 128 * 4
	return e[:l.latent], e[l.latent:][:n], e[l.latent+n:]
}

// block is how many codes of an FP8 entry share a scale.
func (l layout) block() int {
	if l.index {
		return l.latent
	}
	return 128
}

// decode reads entry i of a page.
func (l layout) decode(v []float32, page []byte, i int) {
	if l.f == kernels.FP8 {
		codes, scales, rotary := l.parts(page, i)
		for j, c := range codes {
			v[j] = nvfp4.E4M3[c] * math.Float32frombits(binary.LittleEndian.Uint32(scales[j/l.block()*4:]))
		}
		for j := range len(rotary) / 2 {
			v[l.latent+j] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(rotary[2*j:])) << 16)
		}
		return
	}
	e := page[i*l.entry():]
	for j := range v {
		if l.f == kernels.BF16 {
			v[j] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(e[2*j:])) << 16)
		} else {
			v[j] = math.Float32frombits(binary.LittleEndian.Uint32(e[4*j:]))
		}
	}
}

// encode writes entry i of a page.
func (l layout) encode(page []byte, i int, v []float32) {
	if l.f == kernels.FP8 {
		codes, scales, rotary := l.parts(page, i)
		for at := 0; at < len(codes); at += l.block() {
			part := v[at:min(at+l.block(), len(codes))]
			most := float32(0)
			for _, x := range part {
				most = max(most, float32(math.Abs(float64(x))))
			}
			s := max(most/448, 0x1p-126)
			binary.LittleEndian.PutUint32(scales[at/l.block()*4:], math.Float32bits(s))
			for j, x := range part {
				codes[at+j] = nvfp4.EncodeE4M3(x / s)
			}
		}
		for j := range len(rotary) / 2 {
			binary.LittleEndian.PutUint16(rotary[2*j:], toBF16(v[l.latent+j]))
		}
		return
	}
	e := page[i*l.entry():]
	for j, x := range v {
		if l.f == kernels.BF16 {
			binary.LittleEndian.PutUint16(e[2*j:], toBF16(x))
		} else {
			binary.LittleEndian.PutUint32(e[4*j:], math.Float32bits(x))
		}
	}
}

// toBF16 rounds to nearest even.
func toBF16(v float32) uint16 {
	b := math.Float32bits(v)
	if v != v {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// seeded makes entries for runs of pages from a seed: normal values, the same on
// every machine.
func seeded(m *glm5.Model, seed uint64, runs []PageRun) []Pages {
	var all []Pages
	f := m.Options().KVCache
	for _, k := range caches(m) {
		l := layoutOf(m, k.Name, f)
		v := make([]float32, l.latent+l.rope)
		which := uint64(k.Layer) << 1
		if l.index {
			which++
		}
		for _, r := range runs {
			p := Pages{k.Name, k.Layer, r, make([]byte, int(r.Count)*l.page())}
			for n := range int(r.Count) {
				rng := rand.New(rand.NewPCG(seed, which<<32|uint64(r.First)+uint64(n)))
				for i := range kernels.PageTokens {
					for j := range v {
						v[j] = float32(rng.IntN(1<<16)-1<<15) / (1 << 15)
					}
					l.encode(p.Data[n*l.page():][:l.page()], i, v)
				}
			}
			all = append(all, p)
		}
	}
	return all
}

// converted are pages in another format.
func converted(m *glm5.Model, pages []Pages, from, to kernels.Format) ([]Pages, error) {
	all := make([]Pages, len(pages))
	for i := range pages {
		p := &pages[i]
		a, b := layoutOf(m, p.Cache, from), layoutOf(m, p.Cache, to)
		if len(p.Data) != int(p.Run.Count)*a.page() {
			return nil, fmt.Errorf("%s of layer %d: %d bytes are not %d pages in %s", p.Cache, p.Layer, len(p.Data),
				p.Run.Count, from)
		}
		q := Pages{p.Cache, p.Layer, p.Run, make([]byte, int(p.Run.Count)*b.page())}
		v := make([]float32, a.latent+a.rope)
		for n := range int(p.Run.Count) {
			for j := range kernels.PageTokens {
				a.decode(v, p.Data[n*a.page():][:a.page()], j)
				b.encode(q.Data[n*b.page():][:b.page()], j, v)
			}
		}
		all[i] = q
	}
	return all, nil
}

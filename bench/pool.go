package bench

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"glmbatch/engine/glm5"
	"glmbatch/engine/synth"
	"glmbatch/kernels"
	"glmbatch/units"
)

// pool is the caches of a Bench: how many pages there are, and which of
// them each sequence gets.
type pool struct {
	pages    int
	perToken int64   // bytes of all layers, on each rank
	order    []int32 // the pages in the order in which they are given out
}

// plan chooses the pool's size and says of each case that does not fit why.
// room is the memory for caches; 0: unknown.
func (p *pool) plan(results []Result, slots, room int64) {
	limit := slots
	for i := range results {
		r := &results[i]
		need := r.of.slots()
		switch {
		case slots > 0 && need > slots:
			r.Skipped = fmt.Sprintf("needs %s cache slots, --kv-slots has %s", units.Digits(need), units.Digits(slots))
		case slots == 0 && room > 0 && need*p.perToken > room:
			r.Skipped = fmt.Sprintf("needs %s of caches, there is room for %s", units.Bytes(need*p.perToken),
				units.Bytes(max(0, room-1)))
		default:
			limit = max(limit, need)
		}
	}
	p.pages = int((limit + kernels.PageTokens - 1) / kernels.PageTokens)
}

// shuffle gives out pages from all over the pool.
func (p *pool) shuffle(rng *rand.Rand) {
	p.order = make([]int32, p.pages)
	for i := range p.order {
		p.order[i] = int32(i)
	}
	rng.Shuffle(len(p.order), func(i, j int) { p.order[i], p.order[j] = p.order[j], p.order[i] })
}

// of returns the pages of sequence i, of a number of tokens.
func (p *pool) of(i, tokens int) []int32 {
	n := (tokens + kernels.PageTokens - 1) / kernels.PageTokens
	return p.order[i*n : (i+1)*n]
}

// filledPages is the length of the block of random pages that the pool is filled
// with: a prime, and enough for contexts of 131,072 without repetition.
const filledPages = 2053

// fill makes all entries of all layers random.
func (p *pool) fill(m *glm5.Model, rng *rand.PCG) error {
	c, f := &m.Config, m.Options().KVCache
	tokens := min(p.pages, filledPages) * kernels.PageTokens
	latent := randomEntries(rng, f, tokens, 1, c.KVLoRA, c.QKRope)
	index := randomEntries(rng, f, tokens, kernels.PageTokens, c.IndexHeadDim, 0)
	return m.FillCache(latent, index)
}

// randomEntries makes cache entries of width values with variance 1 and then
// plain more. FP8 entries come in pages of some, whose codes precede their
// scales.
func randomEntries(rng *rand.PCG, f kernels.Format, tokens, page, width, plain int) []byte {
	b := make([]byte, 0, tokens*kernels.LatentEntry(f, width, plain))
	r := rand.New(rng)
	value := func() float32 { // the sum of four: near enough to normal
		x := r.Uint64()
		return (float32(x&0xffff) + float32(x>>16&0xffff) + float32(x>>32&0xffff) + float32(x>>48) - 131070) / 37837
	}
	plainly := func(n int) {
		for range n {
			if f == kernels.F32 {
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(value()))
			} else {
				b = binary.LittleEndian.AppendUint16(b, synth.BF16(value()))
			}
		}
	}
	if f != kernels.FP8 {
		plainly(tokens * (width + plain))
		return b
	}
	const typical = 1.0 / 160 // the scale of codes whose magnitudes are 128 to 240
	for range tokens / page {
		for range page * width {
			x := r.Uint32()
			b = append(b, byte(0x70|x&7|x>>8&0x80))
		}
		for range page * ((width + 127) / 128) {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(typical))
		}
		plainly(page * plain)
	}
	return b
}

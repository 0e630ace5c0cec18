package synth

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"strings"

	"glmbatch/engine/checkpoint"
	"glmbatch/engine/glm5"
)

// randomBlocks are the memory that all weights of a synthetic checkpoint are
// views of: one block for each number format, as long as the largest weight and
// some more, so that weights can begin at different places.
type randomBlocks struct {
	values []byte // BF16, normal with variance 1/hidden
	codes  []byte // NVFP4
	scales []byte // E4M3
	floats []byte // F32, small
	ones   []byte // BF16
	zeros  []byte
	global []byte // F32: gives NVFP4 weights the variance of values
	input  []byte // F32
}

const (
	randomPart = 64 << 20 // bytes that are random; a longer block repeats them
	randomMore = 16 << 20 // how far into a block weights may begin, at most
)

// Checkpoint has random weights in the formats of a release: routed
// experts NVFP4, all else BF16. It takes the memory of the largest weight, not
// of the model; a device that copies weights has all of them.
func Checkpoint(name string, config []byte, c *glm5.Config, seed uint64) (*checkpoint.Checkpoint, error) {
	s := New(c, seed, "nvfp4")
	blocks := s.blocks()
	tensors := make([]checkpoint.Tensor, len(s.Entries))
	for i := range s.Entries {
		e := &s.Entries[i]
		tensors[i] = checkpoint.Tensor{Name: e.Name, DType: e.DType, Shape: e.Shape, Data: blocks.view(e)}
	}
	return checkpoint.FromTensors(name, config, tensors)
}

func (s *Synth) blocks() *randomBlocks {
	var values, codes, scales, vector int64
	for i := range s.Entries {
		e := &s.Entries[i]
		switch {
		case e.DType == checkpoint.U8:
			codes = max(codes, e.Size())
		case e.DType == checkpoint.F8:
			scales = max(scales, e.Size())
		case len(e.Shape) == 2:
			values = max(values, e.Size())
		default:
			vector = max(vector, e.Size())
		}
	}
	room := func(n int64) []byte { return make([]byte, n+min(n, randomMore)) }
	rng := s.random("blocks")
	b := &randomBlocks{values: room(values), codes: room(codes), scales: room(scales), floats: room(vector),
		ones: room(vector), zeros: room(vector)}
	std := 1 / math.Sqrt(float64(s.c.Hidden))
	var table [normals]uint16
	for i, q := range s.normal {
		table[i] = BF16(float32(std * float64(q)))
	}
	repeat(b.values, func(part []byte) { fillBF16(part, &table, rng) })
	repeat(b.codes, func(part []byte) { fillBytes(part, rng, func(r byte) byte { return r }) })
	repeat(b.scales, func(part []byte) { fillBytes(part, rng, func(r byte) byte { return lowScale + r&15 }) })
	for i := 0; i+4 <= len(b.floats); i += 4 {
		binary.LittleEndian.PutUint32(b.floats[i:], math.Float32bits(s.normal[rng.Uint64()%normals]*.01))
	}
	for i := 0; i+2 <= len(b.ones); i += 2 {
		binary.LittleEndian.PutUint16(b.ones[i:], BF16(1))
	}
	// the mean square of E2M1's values
	b.global = binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(std/math.Sqrt(8.5625*s.scaleSq))))
	b.input = binary.LittleEndian.AppendUint32(nil, math.Float32bits(synthInput))
	return b
}

// view returns the bytes of an entry. Where they begin follows from its name.
func (b *randomBlocks) view(e *checkpoint.Entry) []byte {
	var block []byte
	switch {
	case e.DType == checkpoint.U8:
		block = b.codes
	case e.DType == checkpoint.F8:
		block = b.scales
	case len(e.Shape) == 2:
		block = b.values
	case strings.HasSuffix(e.Name, ".weight_scale_2"):
		return b.global
	case len(e.Shape) == 0:
		return b.input
	case e.DType == checkpoint.F32:
		block = b.floats
	case strings.HasSuffix(e.Name, ".bias"):
		block = b.zeros
	default:
		block = b.ones
	}
	h := fnv.New64a()
	h.Write([]byte(e.Name))
	n := e.Size()
	at := int64(h.Sum64()%uint64(int64(len(block))-n+1)) &^ 63
	return block[at : at+n : at+n]
}

// repeat fills the first bytes of b and copies them over the rest.
func repeat(b []byte, fill func(part []byte)) {
	n := min(len(b), randomPart)
	fill(b[:n])
	for at := n; at < len(b); at += n {
		copy(b[at:], b[:n])
	}
}

func fillBytes(b []byte, rng *rand.PCG, to func(byte) byte) {
	var r uint64
	for i := range b {
		if i&7 == 0 {
			r = rng.Uint64()
		}
		b[i] = to(byte(r))
		r >>= 8
	}
}

package glm5

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"glmbatch/datasets/demo"
	"glmbatch/engine/checkpoint"
	"glmbatch/kernels"
	"glmbatch/kernels/cpu"
	"glmbatch/kernels/nvfp4"
	"glmbatch/kernels/ranks"
)

// The scale is the smallest power of two that leaves nothing above E4M3's end.
func TestScale8(t *testing.T) {
	for v := uint16(1); v < 0x7f80; v++ {
		e := scale8(v)
		x := math.Ldexp(bf16Value(v), -e)
		if x > nvfp4.MaxE4M3 || x*2 <= nvfp4.MaxE4M3 {
			t.Fatalf("%g has the scale 2^%d, and is %g", bf16Value(v), e, x)
		}
	}
	if scale8(0) != 0 {
		t.Error("a scale for zeros")
	}
}

// Every value becomes the nearest code, on however many cores, and the error is
// that of all values.
func TestEncode8(t *testing.T) {
	const n = 5<<20 + 3
	rng := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, 2*n)
	for i := range n {
		v := uint16(math.Float32bits(float32(rng.NormFloat64()/80)) >> 16)
		binary.LittleEndian.PutUint16(b[2*i:], v)
	}
	binary.LittleEndian.PutUint16(b, 0x7fc0)       // NaN
	binary.LittleEndian.PutUint16(b[2:], 0xff80)   // -Inf
	binary.LittleEndian.PutUint16(b[2*n-2:], 0x80) // the last
	var r rounded
	e := scale8(largest(b))
	table := r.table(e)
	codes := make([]byte, n)
	s := table.sum(Attn, table.encode(codes, b))
	if codes[0]&0x7f != 0x7f || codes[1]&0x7f != 0x7f {
		t.Errorf("no numbers became %x, %x", codes[0], codes[1])
	}
	wrong, size := 0.0, 0.0
	for i := 2; i < n; i++ {
		v := bf16Value(binary.LittleEndian.Uint16(b[2*i:]))
		got := math.Ldexp(float64(nvfp4.E4M3[codes[i]]), e)
		if best := math.Ldexp(float64(nvfp4.E4M3[nvfp4.EncodeE4M3(float32(math.Ldexp(v, -e)))]), e); got != best {
			t.Fatalf("value %d, %g, became %g, not %g", i, v, got, best)
		}
		wrong, size = wrong+(got-v)*(got-v), size+v*v
	}
	if s.values != n-2 || math.Abs(s.wrong/wrong-1) > 1e-9 || math.Abs(s.size/size-1) > 1e-9 {
		t.Errorf("sums %+v, want %d, %g, %g", s, n-2, wrong, size)
	}
	if x := math.Sqrt(wrong / size); x < .02 || x > .03 {
		t.Errorf("normal values are off by %g", x)
	}
}

// A model's weights are rounded alike on one rank and on eight, the parts that
// stay are left alone, and without the option nothing is rounded.
func TestDenseWeights(t *testing.T) {
	load := func(tp int, dense kernels.Format) []Rounding {
		ck, err := checkpoint.FromFiles(demo.Files())
		if err != nil {
			t.Fatal(err)
		}
		devices, err := cpu.Open(tp, cpu.Options{})
		if err != nil {
			t.Fatal(err)
		}
		g, err := ranks.New(devices, ranks.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		m, err := Load(t.Context(), ck, g, Options{Dense: dense, Context: 256})
		if err != nil {
			t.Fatal(err)
		}
		for i := range m.w.layers {
			l := &m.w.layers[i]
			want := kernels.Name("gemm_bf16")
			if dense == kernels.FP8 {
				want = "gemm_fp8"
			}
			if l.out.parts[0].kernel != want || len(l.front.parts) != 1 || l.front.parts[0].kernel != want ||
				l.absorb.kernel != "q_absorb_bf16" {
				t.Errorf("dense %s: layer %d runs %s, %+v, %s", dense, i, l.out.parts[0].kernel, l.front.parts,
					l.absorb.kernel)
			}
			if l.experts != nil && l.experts.router.parts[0].kernel == "gemm_fp8" {
				t.Errorf("layer %d has its router rounded", i)
			}
		}
		return m.Rounding()
	}
	if r := load(2, ""); len(r) != 0 {
		t.Errorf("nothing was to be rounded: %+v", r)
	}
	one, eight := load(1, kernels.FP8), load(8, kernels.FP8)
	var parts []Part
	for i, r := range one {
		parts = append(parts, r.Part)
		if r.Error < .01 || r.Error > .04 || i >= len(eight) || eight[i].Values != r.Values ||
			math.Abs(eight[i].Error/r.Error-1) > 1e-3 {
			t.Errorf("%+v, and on eight ranks %+v", r, eight)
		}
	}
	if len(parts) != 4 || parts[0] != Attn || parts[1] != Index || parts[2] != DenseMLP || parts[3] != Shared {
		t.Errorf("rounded: %v", parts)
	}
}

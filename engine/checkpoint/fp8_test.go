package checkpoint

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"glmbatch/kernels"
	"glmbatch/kernels/nvfp4"
)

// TestFP8: every form's values are code * scale, rounded to BF16, in any slice.
func TestFP8(t *testing.T) {
	const rows, cols = 130, 300
	rng := rand.New(rand.NewPCG(3, 4))
	codes := make([]byte, rows*cols)
	for i := range codes {
		for codes[i] = byte(rng.Uint32()); codes[i]&0x7f == 0x7f; codes[i]++ { // no number
		}
	}
	random := func(n int) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(math.Exp(4 * (rng.Float64() - .5)))
		}
		return v
	}
	blocks, byRow, one := random(2*3), random(rows), random(1)
	power := []byte{120, 127, 129, 130, 110, 127}
	for _, tt := range []struct {
		name, config string
		scale        stored
		at           func(r, c int) float32
	}{
		{"blocks", "{}", stored{"w.weight_scale_inv", F32, []int{2, 3}, f32(blocks...)},
			func(r, c int) float32 { return blocks[r/128*3+c/128] }},
		{"blocks of another size", `{"quantization_config":{"quant_method":"fp8","weight_block_size":[65,100]}}`,
			stored{"w.weight_scale_inv", F32, []int{2, 3}, f32(blocks...)},
			func(r, c int) float32 { return blocks[r/65*3+c/100] }},
		{"powers of two", "{}", stored{"w.weight_scale_inv", E8M0, []int{2, 3}, power},
			func(r, c int) float32 { return float32(math.Ldexp(1, int(power[r/128*3+c/128])-127)) }},
		{"rows", "{}", stored{"w.weight_scale", F32, []int{rows, 1}, f32(byRow...)},
			func(r, c int) float32 { return byRow[r] }},
		{"one", "{}", stored{"w.weight_scale", F32, nil, f32(one...)}, func(r, c int) float32 { return one[0] }},
	} {
		weight := stored{"w.weight", F8, []int{rows, cols}, codes}
		disk := mustOpen(t, writeFiles(t, map[string][]byte{ConfigFile: []byte(tt.config),
			WeightsFile: pack(t, weight, tt.scale)}))
		for _, c := range []*Checkpoint{disk, fromTensors(t, tt.config, weight, tt.scale)} {
			l, err := c.Linear("w")
			if err != nil {
				t.Fatalf("%s: %v", tt.name, err)
			}
			if l.Format != kernels.BF16 || l.Stored != kernels.FP8 ||
				l.Bytes() != int64(len(codes)+len(tt.scale.data)) {
				t.Errorf("%s: %s stored as %s in %d bytes", tt.name, l.Format, l.Stored, l.Bytes())
			}
			for _, s := range [][4]int{{0, rows, 0, cols}, {0, 0, 0, 0}, {100, 130, 0, cols}, {127, 129, 90, 270},
				{5, 6, 299, 300}} {
				m, err := l.Slice(s[0], s[1], s[2], s[3])
				if err != nil {
					t.Fatal(err)
				}
				width := s[3] - s[2]
				v := make([]float32, (s[1]-s[0])*width)
				BF16.decode(v, m.Data)
				for i := range v {
					r, c := s[0]+i/width, s[2]+i%width
					exact := float64(nvfp4.E4M3[codes[r*cols+c]]) * float64(tt.at(r, c))
					if math.Abs(float64(v[i])-exact) > math.Abs(exact)/256 || tt.name == "powers of two" &&
						float64(v[i]) != exact {
						t.Fatalf("%s %v: value [%d, %d] is %g, want %g", tt.name, s, r, c, v[i], exact)
					}
				}
			}
			wide := l.Wide()
			v, err := wide.Float32(129, 130)
			if err != nil || wide.Format != kernels.F32 {
				t.Fatalf("%s: wide: %s, %v", tt.name, wide.Format, err)
			}
			for c := range v {
				if want := nvfp4.E4M3[codes[129*cols+c]] * tt.at(129, c); v[c] != want {
					t.Fatalf("%s: wide value %d is %g, want %g", tt.name, c, v[c], want)
				}
			}
			checkBlocks(t, tt.name, &l)
			whole, ok := l.Codes()
			if ok != (tt.name == "one") {
				t.Errorf("%s: codes %v", tt.name, ok)
			}
			if ok {
				v, err := whole.Float32(7, 8)
				if err != nil || whole.Format != kernels.FP8 || v[9] != nvfp4.E4M3[codes[7*cols+9]]*one[0] {
					t.Errorf("codes: %s, %g, %v", whole.Format, v[9], err)
				}
			}
		}
	}
	// A scale that is no number is said when it is used.
	l, err := fromTensors(t, "{}", stored{"w.weight", F8, []int{1, 1}, []byte{1}},
		stored{"w.weight_scale_inv", F32, []int{1, 1}, f32(float32(math.Inf(1)))}).Linear("w")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Slice(0, 1, 0, 1); err == nil {
		t.Error("an infinite scale was taken")
	}
}

// checkBlocks: slices with codes and the scales of blocks have the values of BF16
// slices, for all shares whose scales can be told so.
func checkBlocks(t *testing.T, name string, l *Linear) {
	t.Helper()
	for _, c := range []struct {
		share int
		ok    map[string]bool
	}{
		// blocks of 100 columns are no multiple of 128
		{300, map[string]bool{"blocks": true, "powers of two": true, "rows": true, "one": true}},
		{128, map[string]bool{"blocks": true, "powers of two": true, "rows": true, "one": true}},
		{50, map[string]bool{"blocks of another size": true, "rows": true, "one": true}},
		{100, map[string]bool{"blocks of another size": true, "rows": true, "one": true}},
	} {
		b, ok := l.Blocks(c.share)
		if ok != c.ok[name] {
			t.Errorf("%s: shares of %d columns: %v", name, c.share, ok)
		}
		for lo := 0; ok && lo < l.Cols; lo += c.share {
			hi := min(lo+c.share, l.Cols)
			m, err := b.Slice(5, 129, lo, hi)
			if err != nil {
				t.Fatal(err)
			}
			plain, err := l.Slice(5, 129, lo, hi)
			if err != nil {
				t.Fatal(err)
			}
			width := hi - lo
			scales := make([]float32, len(m.Scales)/4)
			F32.decode(scales, m.Scales)
			if len(m.Data) != 124*width || len(scales) != 124*kernels.ScaleColumns(width) {
				t.Fatalf("%s: %d codes and %d scales for 124 rows of %d", name, len(m.Data), len(scales), width)
			}
			v := make([]float32, len(m.Data))
			for i, code := range m.Data {
				v[i] = nvfp4.E4M3[code] * scales[i/width*kernels.ScaleColumns(width)+i%width/kernels.ScaledColumns]
			}
			if !bytes.Equal(ToBF16(v), plain.Data) {
				t.Errorf("%s: columns %d to %d differ from the BF16 slice", name, lo, hi)
			}
		}
	}
}

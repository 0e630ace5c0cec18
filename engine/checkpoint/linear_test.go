package checkpoint

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"glmbatch/kernels"
	"glmbatch/kernels/nvfp4"
)

// forms are one weight [rows, cols] in every form that can be read.
func forms(t testing.TB, rows, cols int, w []float32) map[string][]stored {
	packed, scales, global := nvfp4.Quantize(w, rows, cols)
	var half []byte
	for range w {
		half = append(half, 0, 0x3c) // 1
	}
	var rounded []float32
	for _, v := range w {
		rounded = append(rounded, math.Float32frombits(math.Float32bits(v)&^0xffff))
	}
	return map[string][]stored{
		"f32":  {{"w.weight", F32, []int{rows, cols}, f32(w...)}},
		"bf16": {{"w.weight", BF16, []int{rows, cols}, bf16(rounded...)}},
		"f16":  {{"w.weight", F16, []int{rows, cols}, half}},
		"modelopt": {{"w.weight_scale_2", F32, nil, f32(global)}, {"w.input_scale", F32, nil, f32(.25)},
			{"w.weight", U8, []int{rows, cols / 2}, packed}, {"w.weight_scale", F8, []int{rows, cols / 16}, scales}},
		"compressed": {{"w.weight_global_scale", F32, []int{1}, f32(1 / global)},
			{"w.input_global_scale", F32, []int{1}, f32(4)},
			{"w.weight_packed", U8, []int{rows, cols / 2}, packed}, {"w.weight_scale", F8, []int{rows, cols / 16},
				scales}},
	}
}

func fromTensors(t testing.TB, config string, ts ...stored) *Checkpoint {
	t.Helper()
	c, err := FromFiles(map[string][]byte{ConfigFile: []byte(config), WeightsFile: pack(t, ts...)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestForms(t *testing.T) {
	const rows, cols = 6, 48
	w := make([]float32, rows*cols)
	for i := range w {
		w[i] = float32(math.Sin(float64(i)))
	}
	packed, scales, global := nvfp4.Quantize(w, rows, cols)
	quantized := make([]float32, len(w))
	nvfp4.Dequantize(quantized, packed, scales, global)
	for name, ts := range forms(t, rows, cols, w) {
		l, err := fromTensors(t, "{}", ts...).Linear("w")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if l.Rows != rows || l.Cols != cols {
			t.Errorf("%s: [%d, %d]", name, l.Rows, l.Cols)
		}
		want, tolerance := w, 0.
		switch name {
		case "bf16":
			tolerance = 1. / 128
		case "f16":
			want = make([]float32, len(w))
			for i := range want {
				want[i] = 1
			}
		case "modelopt", "compressed":
			want = quantized
			if l.Format != kernels.FP4 || l.Input != .25 {
				t.Errorf("%s: format %s, input scale %v", name, l.Format, l.Input)
			}
			if name == "compressed" {
				tolerance = 1e-6 // the reciprocal of a reciprocal
			}
		}
		got, err := l.Float32(0, rows)
		if err != nil {
			t.Fatal(err)
		}
		for i := range got {
			if math.Abs(float64(got[i]-want[i])) > tolerance {
				t.Errorf("%s: value %d is %v, want %v", name, i, got[i], want[i])
				break
			}
		}
	}
}

// TestSlice: any part has the values that the whole has there.
func TestSlice(t *testing.T) {
	const rows, cols = 7, 64
	w := make([]float32, rows*cols)
	for i := range w {
		w[i] = float32(math.Cos(float64(i * i)))
	}
	for name, ts := range forms(t, rows, cols, w) {
		l, err := fromTensors(t, "{}", ts...).Linear("w")
		if err != nil {
			t.Fatal(err)
		}
		whole, err := l.Float32(0, rows)
		if err != nil {
			t.Fatal(err)
		}
		rapid.Check(t, func(t *rapid.T) {
			r0 := rapid.IntRange(0, rows).Draw(t, "r0")
			r1 := rapid.IntRange(r0, rows).Draw(t, "r1")
			c0 := rapid.IntRange(0, cols/16).Draw(t, "c0") * 16
			c1 := c0 + rapid.IntRange(0, (cols-c0)/16).Draw(t, "c1")*16
			m, err := l.Slice(r0, r1, c0, c1)
			if err != nil {
				t.Fatal(err)
			}
			got := make([]float32, (r1-r0)*(c1-c0))
			switch l.Format {
			case kernels.FP4:
				if len(m.Data) != len(got)/2 || len(m.Scales) != len(got)/16 {
					t.Fatalf("%s: %d codes, %d scales for %d values", name, len(m.Data), len(m.Scales), len(got))
				}
				nvfp4.Dequantize(got, m.Data, m.Scales, m.Global)
			case kernels.BF16:
				BF16.decode(got, m.Data)
			default:
				F32.decode(got, m.Data)
			}
			for i, v := range got {
				r, c := r0+i/(c1-c0), c0+i%(c1-c0)
				if v != whole[r*cols+c] {
					t.Fatalf("%s: [%d, %d] is %v, want %v", name, r, c, v, whole[r*cols+c])
				}
			}
		})
		for _, bad := range [][4]int{{-1, 2, 0, 16}, {0, 8, 0, 16}, {3, 2, 0, 16}, {0, 2, -16, 16}, {0, 2, 0, 80},
			{0, 2, 32, 16}} {
			if _, err := l.Slice(bad[0], bad[1], bad[2], bad[3]); err == nil {
				t.Errorf("%s %v: no error", name, bad)
			}
		}
		if _, err := l.Slice(0, 2, 8, 24); (err != nil) != (l.Format == kernels.FP4) {
			t.Errorf("%s: half a block: %v", name, err)
		}
	}
}

// TestSliceShares: of a file in memory whole rows are a view, not a copy.
func TestSliceShares(t *testing.T) {
	c, err := FromFiles(map[string][]byte{ConfigFile: []byte("{}"), WeightsFile: pack(t, forms(t, 4, 32,
		make([]float32, 128))["modelopt"]...)})
	if err != nil {
		t.Fatal(err)
	}
	l, err := c.Linear("w")
	if err != nil {
		t.Fatal(err)
	}
	m, err := l.Slice(2, 4, 0, l.Cols)
	if err != nil {
		t.Fatal(err)
	}
	if &m.Data[0] != &l.data.Data[2*l.Cols/2] || &m.Scales[0] != &l.scales.Data[2*l.Cols/16] {
		t.Error("whole rows are copied")
	}
}

func TestLinearFaults(t *testing.T) {
	fp4 := func(change func(ts []stored) []stored) []stored {
		ts := forms(t, 2, 32, make([]float32, 64))["modelopt"]
		return change(ts)
	}
	without := func(name string) []stored {
		return fp4(func(ts []stored) []stored {
			var out []stored
			for _, x := range ts {
				if x.name != name {
					out = append(out, x)
				}
			}
			return out
		})
	}
	replace := func(with stored) []stored { return append(without(with.name), with) }
	for _, tt := range []struct {
		name string
		ts   []stored
		want string
	}{
		{"FP8 without scales", []stored{{"w.weight", F8, []int{2, 2}, make([]byte, 4)}},
			"weight_scale_inv or weight_scale, which is missing"},
		{"FP8 with scales of other blocks", []stored{{"w.weight", F8, []int{2, 2}, make([]byte, 4)},
			{"w.weight_scale_inv", F32, []int{3, 1}, f32(1, 1, 1)}}, "[1, 1] of blocks of 128 x 128"},
		{"FP8 with whole numbers for scales", []stored{{"w.weight", F8, []int{2, 2}, make([]byte, 4)},
			{"w.weight_scale", "I32", []int{1}, make([]byte, 4)}}, "w.weight_scale is I32"},
		{"an FP8 vector", []stored{{"w.weight", F8, []int{2}, make([]byte, 2)}}, "two dimensions"},
		{"E5M2", []stored{{"w.weight", "F8_E5M2", []int{2, 2}, make([]byte, 4)}}, "F8_E5M2"},
		{"integers", []stored{{"w.weight", "I32", []int{1, 1}, make([]byte, 4)}}, "I32"},
		{"a vector", []stored{{"w.weight", BF16, []int{2}, bf16(1, 2)}}, "two dimensions"},
		{"no block scales", without("w.weight_scale"), "weight_scale"},
		{"no global scale", without("w.weight_scale_2"), "weight_scale_2"},
		{"FP8 as bytes", append(without("w.weight_scale"), stored{"w.weight_scale_inv", F32, []int{1, 1}, f32(1)}),
			"weight_scale"},
		{"scales of another block", replace(stored{"w.weight_scale", F8, []int{2, 1}, make([]byte, 2)}), "[2, 2]"},
		{"scales of another type", replace(stored{"w.weight_scale", U8, []int{2, 2}, make([]byte, 4)}), "F8_E4M3"},
		{"half a block", replace(stored{"w.weight", U8, []int{2, 12}, make([]byte, 24)}), "24 columns"},
		{"three dimensions", replace(stored{"w.weight", U8, []int{2, 4, 4}, make([]byte, 32)}), "[2 4 4]"},
		{"a scale of 0", replace(stored{"w.weight_scale_2", F32, nil, f32(0)}), "positive"},
		{"a scale of NaN", replace(stored{"w.weight_scale_2", F32, nil, f32(float32(math.NaN()))}), "positive"},
		{"two scales", replace(stored{"w.weight_scale_2", F32, []int{2}, f32(1, 1)}), "2 values"},
	} {
		_, err := fromTensors(t, "{}", tt.ts...).Linear("w")
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "w") {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
	if _, err := fromTensors(t, "{}", stored{"v", U8, []int{1}, []byte{1}}).Vector("v"); err == nil ||
		!strings.Contains(err.Error(), "U8") {
		t.Errorf("a vector of bytes: %v", err)
	}
}

// TestHalf compares with the definition of the format.
func TestHalf(t *testing.T) {
	for h := range 1 << 16 {
		sign, exp, man := 1-2*float64(h>>15), h>>10&31, float64(h&1023)
		want := sign * math.Ldexp(1024+man, exp-25)
		switch {
		case exp == 0:
			want = sign * math.Ldexp(man, -24)
		case exp == 31 && man == 0:
			want = sign * math.Inf(1)
		case exp == 31:
			want = math.NaN()
		}
		var got [1]float32
		F16.decode(got[:], binary.LittleEndian.AppendUint16(nil, uint16(h)))
		if float64(got[0]) != want && !(math.IsNaN(want) && got[0] != got[0]) {
			t.Fatalf("%#x is %v, want %v", h, got[0], want)
		}
	}
}

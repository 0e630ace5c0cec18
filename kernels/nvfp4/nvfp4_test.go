package nvfp4

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// nearest searches all codes for the one closest to x; of two that are as
// close, the even code. It is what the encoders must agree with.
func nearest(values []float32, x float64) byte {
	best, code := math.Inf(1), 0
	for i, v := range values {
		d := math.Abs(float64(v) - x)
		if d < best || d == best && i%2 == 0 {
			best, code = d, i
		}
	}
	return byte(code)
}

// sweep calls f with magnitudes between, at and just beside all values and the
// middles between them.
func sweep(values []float32, f func(x float32)) {
	inf := float32(math.Inf(1))
	for i, v := range values {
		next := 2 * v
		if i+1 < len(values) {
			next = values[i+1]
		}
		mid := v + (next-v)/2
		for _, x := range []float32{v, v + (next-v)/4, mid, math.Nextafter32(mid, 0), math.Nextafter32(mid, inf)} {
			f(x)
		}
	}
}

func TestEncodeE2M1(t *testing.T) {
	sweep(E2M1[:8], func(x float32) {
		want := nearest(E2M1[:8], min(float64(x), 6))
		if got := EncodeE2M1(x); got != want {
			t.Errorf("EncodeE2M1(%v) = %d, want %d", x, got, want)
		}
		if got := EncodeE2M1(-x); x > 0 && got != want|8 {
			t.Errorf("EncodeE2M1(%v) = %d, want %d", -x, got, want|8)
		}
	})
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for x, want := range map[float32]byte{inf: 7, -inf: 15, 1e30: 7, float32(math.Copysign(0, -1)): 0} {
		if got := EncodeE2M1(x); got != want {
			t.Errorf("EncodeE2M1(%v) = %d, want %d", x, got, want)
		}
	}
	if got := EncodeE2M1(nan); got != 7 {
		t.Errorf("EncodeE2M1(NaN) = %d, want 7", got)
	}
	// The ties, as ModelOpt documents them.
	for x, want := range map[float32]float32{.25: 0, .75: 1, 1.25: 1, 1.75: 2, 2.5: 2, 3.5: 4, 5: 4} {
		if got := E2M1[EncodeE2M1(x)]; got != want {
			t.Errorf("%v rounds to %v, want %v", x, got, want)
		}
	}
}

func TestE4M3(t *testing.T) {
	// Values that the format's definition fixes.
	for b, want := range map[byte]float32{0: 0, 1: 0x1p-9, 7: 7 * 0x1p-9, 8: 0x1p-6, 0x38: 1, 0x3c: 1.5, 0x7e: 448,
		0xb8: -1, 0xfe: -448} {
		if E4M3[b] != want {
			t.Errorf("E4M3[%#x] = %v, want %v", b, E4M3[b], want)
		}
	}
	for _, b := range []byte{0x7f, 0xff} {
		if E4M3[b] == E4M3[b] {
			t.Errorf("E4M3[%#x] = %v, want NaN", b, E4M3[b])
		}
	}
	positive := E4M3[:0x7f]
	sweep(positive, func(x float32) {
		want := nearest(positive, min(float64(x), MaxE4M3))
		if got := EncodeE4M3(x); got != want {
			t.Errorf("EncodeE4M3(%v) = %#x, want %#x", x, got, want)
		}
		if got := EncodeE4M3(-x); got != want|0x80 {
			t.Errorf("EncodeE4M3(%v) = %#x, want %#x", -x, got, want|0x80)
		}
	})
	inf := float32(math.Inf(1))
	for x, want := range map[float32]byte{inf: 0x7e, -inf: 0xfe, 460: 0x7e, 1e30: 0x7e, 1e-30: 0} {
		if got := EncodeE4M3(x); got != want {
			t.Errorf("EncodeE4M3(%v) = %#x, want %#x", x, got, want)
		}
	}
	if got := EncodeE4M3(float32(math.NaN())); got&0x7f != 0x7f {
		t.Errorf("EncodeE4M3(NaN) = %#x", got)
	}
}

func TestEncodeE4M3Random(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Float32Range(0, 500).Draw(t, "x")
		if got, want := EncodeE4M3(x), nearest(E4M3[:0x7f], min(float64(x), MaxE4M3)); got != want {
			t.Fatalf("EncodeE4M3(%v) = %#x, want %#x", x, got, want)
		}
	})
}

// TestQuantizeError: no value moves by more than half of the largest step of
// its block, but for the rounding of the scale itself.
func TestQuantizeError(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, cols := rapid.IntRange(1, 4).Draw(t, "rows"), 16*rapid.IntRange(1, 4).Draw(t, "blocks")
		w := make([]float32, rows*cols)
		for i := range w {
			w[i] = rapid.Float32Range(-3, 3).Draw(t, "w")
		}
		packed, scales, global := Quantize(w, rows, cols)
		got := make([]float32, len(w))
		Dequantize(got, packed, scales, global)
		for b := range len(w) / Block {
			amax := float64(Amax(w[b*Block : (b+1)*Block]))
			floor := float64(MinE4M3 * global * MaxE2M1) // what the least scale can hold
			for i := b * Block; i < (b+1)*Block; i++ {
				// The widest gap is 2 of 6, and the scale is off by up to 1/16.
				if d := math.Abs(float64(got[i] - w[i])); d > max(amax, floor)*(1./6+1./16) {
					t.Fatalf("value %d: %v became %v (block's largest %v)", i, w[i], got[i], amax)
				}
			}
		}
	})
}

func TestQuantizeEdges(t *testing.T) {
	t.Run("zeros", func(t *testing.T) {
		packed, scales, global := Quantize(make([]float32, 32), 1, 32)
		if global != 1 || scales[0] != 0x38 || scales[1] != 0x38 || packed[0] != 0 {
			t.Errorf("global %v, scales %x, packed %x: want 1, scales of 1, zeros", global, scales, packed)
		}
	})
	t.Run("floor", func(t *testing.T) {
		w := make([]float32, 32)
		w[0], w[16] = 2688, 1e-6 // the second block's scale would round to 0
		_, scales, global := Quantize(w, 1, 32)
		if global != 1 || scales[0] != 0x7e || scales[1] != 1 {
			t.Errorf("global %v, scales %x: want 1, [7e 01]", global, scales)
		}
	})
	t.Run("exact", func(t *testing.T) {
		w := make([]float32, 16)
		copy(w, E2M1[:])
		w[15] = 6 * 448 / 2 // scale 224, global 1/2
		for i := range w[:15] {
			w[i] = E2M1[i] * 224
		}
		packed, scales, global := Quantize(w, 1, 16)
		got := make([]float32, 16)
		Dequantize(got, packed, scales, global)
		for i := range w {
			if got[i] != w[i] {
				t.Errorf("value %d: %v became %v", i, w[i], got[i])
			}
		}
		if packed[0] != 0x10 {
			t.Errorf("packed[0] = %#x: the even column is the low nibble, want 0x10", packed[0])
		}
	})
}

func TestAmax(t *testing.T) {
	nan := float32(math.NaN())
	if got := Amax([]float32{1, -3, 2}); got != 3 {
		t.Errorf("got %v, want 3", got)
	}
	if got := Amax([]float32{1, nan, 2}); got == got {
		t.Errorf("got %v, want NaN", got)
	}
	if got := Amax(nil); got != 0 {
		t.Errorf("got %v, want 0", got)
	}
}

func BenchmarkQuantize(b *testing.B) {
	w := make([]float32, 256*1024)
	for i := range w {
		w[i] = float32(math.Sin(float64(i)))
	}
	b.SetBytes(int64(4 * len(w)))
	for b.Loop() {
		Quantize(w, 256, 1024)
	}
}

func BenchmarkDequantize(b *testing.B) {
	w := make([]float32, 256*1024)
	packed, scales, global := Quantize(w, 256, 1024)
	b.SetBytes(int64(4 * len(w)))
	for b.Loop() {
		Dequantize(w, packed, scales, global)
	}
}

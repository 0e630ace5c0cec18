package nvfp4

import "math"

// Amax returns the largest magnitude in w; NaN if one is NaN.
func Amax(w []float32) float32 {
	var m uint32
	for _, v := range w {
		m = max(m, math.Float32bits(v)&^(1<<31))
	}
	return math.Float32frombits(m)
}

// Global returns the tensor's scale for values up to amax: 1 where all are 0,
// or so small that the scale would be.
func Global(amax float32) float32 {
	if g := amax / (MaxE2M1 * MaxE4M3); g != 0 {
		return g
	}
	return 1
}

// Quantize packs w, [rows, cols] with cols a multiple of [Block]. packed is
// [rows, cols/2], scales [rows, cols/Block]. Infinities and NaNs have no form in
// NVFP4: a caller who cannot rule them out looks at [Amax] first.
func Quantize(w []float32, rows, cols int) (packed, scales []byte, global float32) {
	packed, scales = make([]byte, rows*cols/2), make([]byte, rows*cols/Block)
	global = Global(Amax(w[:rows*cols]))
	QuantizeBlocks(packed, scales, w[:rows*cols], global)
	return packed, scales, global
}

// QuantizeBlocks packs len(w)/Block blocks with a global scale that is given,
// as tensors that are multiplied together share theirs.
func QuantizeBlocks(packed, scales []byte, w []float32, global float32) {
	for b := range len(w) / Block {
		x := w[b*Block : (b+1)*Block : (b+1)*Block]
		scales[b] = blockScale(Amax(x), global)
		step := E4M3[scales[b]] * global
		out := packed[b*Block/2 : (b+1)*Block/2]
		for j := range out {
			out[j] = EncodeE2M1(x[2*j]/step) | EncodeE2M1(x[2*j+1]/step)<<4
		}
	}
}

// blockScale is ModelOpt's: 1 for a block of zeros, and never so small that it
// rounds to 0.
func blockScale(amax, global float32) byte {
	if amax == 0 {
		return EncodeE4M3(1)
	}
	return EncodeE4M3(min(max(amax/(MaxE2M1*global), MinE4M3), MaxE4M3))
}

// Dequantize unpacks len(packed)*2 values into dst.
func Dequantize(dst []float32, packed, scales []byte, global float32) {
	for b := range len(packed) / (Block / 2) {
		in := packed[b*Block/2 : (b+1)*Block/2 : (b+1)*Block/2]
		out := dst[b*Block : (b+1)*Block : (b+1)*Block]
		scale := E4M3[scales[b]]
		for j, p := range in {
			out[2*j] = E2M1[p&15] * scale * global
			out[2*j+1] = E2M1[p>>4] * scale * global
		}
	}
}

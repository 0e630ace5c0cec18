package cpu

import "math/bits"

// uniform returns a number in [0, 1) that is a function of a key and a counter
// alone: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1,
// 2, 3", 2011) of the counter, its upper two words zero, under the key. The
// first two words of its output, the first the lower, give the 53 leading bits.
func uniform(key, counter uint64) float64 {
	c := [4]uint32{uint32(counter), uint32(counter >> 32), 0, 0}
	k0, k1 := uint32(key), uint32(key>>32)
	for range 10 {
		h0, l0 := bits.Mul32(0xd2511f53, c[0])
		h1, l1 := bits.Mul32(0xcd9e8d57, c[2])
		c = [4]uint32{h1 ^ c[1] ^ k0, l1, h0 ^ c[3] ^ k1, l0}
		k0, k1 = k0+0x9e3779b9, k1+0xbb67ae85
	}
	return float64((uint64(c[1])<<32|uint64(c[0]))>>11) / (1 << 53)
}

package cpu

import (
	"glmbatch/kernels"
	"glmbatch/kernels/cpu/simd"
)

// slotUnits: a unit is a page of slots.
func slotUnits(d *kernels.Dims) int {
	return int((d.Slots + kernels.PageTokens - 1) / kernels.PageTokens)
}

// kvCast copies entries of an FP8 latent cache to a BF16 one.
func kvCast(x *frame, lo, hi int) error {
	k, wide := int(x.K), int(x.K+x.Rope)
	cache := simd.Cache{Format: kernels.FP8, Data: x.bytes(0, x.rank), Latent: k, Rope: int(x.Rope)}
	pool := x.bytes(1, x.rank)
	from, to := int64(kernels.LatentEntry(kernels.FP8, k, int(x.Rope))), int64(2*wide)
	if x.err == nil && (int64(len(cache.Data))/from < x.Slots || int64(len(pool))/to < x.Slots) {
		x.fail(1, "%d entries of %d bytes do not fit %d and %d bytes", x.Slots, from, len(cache.Data), len(pool))
	}
	if x.err != nil {
		return x.err
	}
	entry := x.s.floats(0, wide)
	for s := lo * kernels.PageTokens; s < min(hi*kernels.PageTokens, int(x.Slots)); s++ {
		simd.Entry(entry, cache, s)
		simd.EncodeBF16(pool[s*2*wide:][:2*wide], entry)
	}
	return nil
}

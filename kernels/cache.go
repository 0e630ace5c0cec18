package kernels

// PageTokens is the number of tokens in a page of the caches.
const PageTokens = 64

// Cache layouts. Both caches are arrays of pages of [PageTokens] slots; slot s
// is in page s/PageTokens.
//
// The latent cache has one entry after the other: the latent's values, then the
// rotary key's. F32 and BF16 store them plainly. FP8 stores the latent as E4M3,
// then one float32 scale for each 128 latent values (or the rest), then the
// rotary key as BF16: 656 bytes for GLM-5's 512 + 64.
//
// The indexer's cache has one key an entry. F32 and BF16 store it plainly. FP8
// has, in each page, the E4M3 keys of its 64 slots and then their 64 float32
// scales: 132 bytes a token for GLM-5's 128.

// LatentEntry returns the bytes of one token in the latent cache of one layer.
func LatentEntry(f Format, latent, rope int) int {
	switch f {
	case F32:
		return 4 * (latent + rope)
	case BF16:
		return 2 * (latent + rope)
	case FP8:
		return latent + 4*((latent+127)/128) + 2*rope
	}
	return 0
}

// IndexEntry returns the bytes of one token in the indexer's cache of one layer.
func IndexEntry(f Format, dim int) int {
	switch f {
	case F32:
		return 4 * dim
	case BF16:
		return 2 * dim
	case FP8:
		return dim + 4
	}
	return 0
}

// ScaledColumns is how many values of a row of an FP8B weight have one scale. Blocks
// of more rows than one, as releases have them, repeat theirs.
const ScaledColumns = 128

// ScaleColumns returns the scales of a row of k values of an FP8B weight.
func ScaleColumns[N int | int64](k N) N { return (k + ScaledColumns - 1) / ScaledColumns }

// WeightBytes returns the bytes of an [n, k] weight as checkpoints store it.
func WeightBytes(f Format, n, k int64) int64 {
	switch f {
	case F32:
		return 4 * n * k
	case BF16:
		return 2 * n * k
	case FP8:
		return n * k
	case FP8B:
		return n*k + 4*n*ScaleColumns(k)
	case FP4:
		return n*k/2 + n*k/16
	}
	return 0
}

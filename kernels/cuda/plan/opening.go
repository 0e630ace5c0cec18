package plan

import (
	"slices"

	"glmbatch/kernels"
)

// Of an opening, as in src/opening.cuh.
const (
	openingBytes = 28688
	openingRows  = 8
	openingTiles = 3 // of the shared expert's down product, of a block
	openingK     = 256
)

// opens reports whether moe_up, call c, can choose its experts itself, as call r says.
func opens(r, c *kernels.Call) bool {
	return r.Kernel == "moe_route" && c.Kernel == "moe_up_fp4" && segmentsOf(r) > 0 && r.Args[2] == c.Args[2] && r.Dims.M == c.Dims.M && c.Dims.M <= openingRows &&
		(c.Dims.M == 1 || c.Dims.K == ringK)
}

// opening takes the calls that moe_up, in so many blocks, can open with out of the
// bundle, and reports whether it opens.
func (b *builder) opening(u *upP, blocks int32) bool {
	taken := func(s segment) bool {
		switch {
		case s.route != nil && s.route.experts == u.moe.experts && s.route.m == u.moe.m:
			u.opening.route = *s.route
			return true
		case s.op == opProductBF16:
			p := s.product
			if p.act != 0 && p.k == openingK && p.share == 1 && p.heads == 1 && p.m == u.moe.m && p.tiles <= openingTiles*blocks {
				u.opening.shared = *p
				return true
			}
		}
		return false
	}
	route := func(s segment) bool { return s.route != nil && taken(s) }
	if u.moe.m > openingRows || !slices.ContainsFunc(b.bundle, route) {
		return false
	}
	b.bundle = slices.DeleteFunc(b.bundle, taken)
	return true
}

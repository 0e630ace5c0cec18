package plan

import (
	"slices"

	"glmbatch/kernels"
)

// hasPrologue reports whether moe_up, call c, can choose its experts itself, as call r says.
func hasPrologue(r, c *kernels.Call) bool {
	return r.Kernel == "moe_route" && c.Kernel == "moe_up_fp4" && segmentsOf(r) > 0 && r.Args[2] == c.Args[2] &&
		r.Dims.M == c.Dims.M && c.Dims.M <= prologueRows &&
		(c.Dims.M == 1 || c.Dims.K == wsK)
}

// prologue takes the calls that moe_up, in so many blocks, can have as its prologue out of the
// bundle, and reports whether it has one.
func (b *builder) prologue(u *moeUpP, blocks int32) bool {
	taken := func(s segment) bool {
		switch {
		case s.route != nil && s.route.experts == u.moe.experts && s.route.m == u.moe.m:
			u.prologue.route = *s.route
			return true
		case s.op == opGemvBf16:
			p := s.gemv
			if p.act != 0 && p.k == prologueK && p.share == 1 && p.heads == 1 && p.m == u.moe.m &&
				p.tiles <= prologueTiles*blocks {
				u.prologue.shared = *p
				return true
			}
		}
		return false
	}
	route := func(s segment) bool { return s.route != nil && taken(s) }
	if u.moe.m > prologueRows || !slices.ContainsFunc(b.segments, route) {
		return false
	}
	b.segments = slices.DeleteFunc(b.segments, taken)
	return true
}

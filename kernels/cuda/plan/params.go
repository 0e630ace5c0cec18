package plan

// The kernels' parameter structs, field by field as in src/*.cu. A pointer is a
// device address.

type packP struct {
	data, scales, out     uintptr
	rows, cols, tiles, kt int32
}

type blocksP struct {
	data, scales, out, at uintptr
	rows, cols, tiles, kt int32
}

type gemmP struct {
	w, x, y, at         uintptr
	m, n, k, ldx, ldy   int32
	global, globalUp    float32
	heads, xhead, yhead int32
	whead               int64
	rope, pos           uintptr
	nrope               int32
}

type productP struct {
	w, x, y, at               uintptr
	m, n, k, ldx, ldy         int32
	global                    float32
	heads, tiles, share, ring int32
	xhead, yhead              int32
	whead                     int64
	act, actAt                uintptr
	ldact                     int32
}

type broadP struct {
	w, x, y, at                uintptr
	m, n, k, ldx, ldy          int32
	global                     float32
	tiles, share, width, slots int32
}

type moeP struct {
	w, global, x, experts, weights, y, list, offsets, scratch, at uintptr
	m, n, k, topk, groups, ldx, ldy, ldw, byPair                  int32
	tokens, slots, early                                          int32
	wexpert                                                       int64
}

type exactP struct {
	w, globals, x, y, experts, weights, rope, pos, at uintptr
	m, n, k, ldx, ldy, ldw                            int32
	heads, xhead, yhead, nrope, topk, groups, byPair  int32
	global                                            float32
	wnext                                             int64
}

type openingP struct {
	route  routeP
	shared productP
}

type upP struct {
	moe     moeP
	opening openingP
}

type groupP struct {
	experts, list, offsets, at uintptr
	pairs, groups              int32
}

type rowsP struct {
	x, y, w, b, rope, pos, idx, res, cache, at uintptr
	m, n, k, ldx, ldy, ldr, nrope, heads       int32
	format                                     int32
	eps                                        float32
}

type routeP struct {
	x, bias, experts, weights, at uintptr
	m, n, topk, ldx, ldw          int32
	groups, keep, norm            int32
	scale                         float32
}

type quantP struct {
	x, y, experts, input, at    uintptr
	pairs, k, topk, ldx, byPair int32
}

type attendP struct {
	q, cache, pages, seq, pos, sel, part, y, at         uintptr
	m, k, nrope, heads, topk, splits, pagesLd, ldq, ldy int32
	scale                                               float32
}

type castP struct {
	cache, out, at uintptr
	slots          int64
	k, nrope       int32
}

type indexP struct {
	q, hw, rope, cache, pages, seq, pos, scores, at, split uintptr
	m, k, heads, nrope, span, pagesLd, ldq, ldhw, lds      int32
	early                                                  int32
	scale                                                  float32
}

type absorbP struct {
	w, x, y, at, rope, pos                               uintptr
	whead                                                int64
	m, n, k, ldx, ldy, nrope, heads, tiles, xhead, yhead int32
	early                                                int32
	global                                               float32
}

type topP struct {
	scores, pos, sel, at uintptr
	topk, lds, m, waits  int32
	absorb               absorbP
}

type sampleP struct {
	logits, params, seen, counts, masks, entries, y, work, at uintptr
	n, ld, seenBytes, maskBytes, countBytes                   int32
}

type commP struct {
	inbox                            [MaxRanks]uintptr
	half                             uint64
	epoch, failed, stop              uintptr
	limit                            uint64
	x, y, w, res, at, panels         uintptr
	m, n, ldx, ldy, ldr, row0, cols  int32
	rank, ranks, phases, early, wide int32
	eps                              float32
}

type sumP struct {
	parts, y, at uintptr
	n            int64
	ranks        int32
}

type feedP struct {
	last, from, rows, seq, pages, tokens, pos, slots, params, seen, counts, at uintptr
	m, n, pagesLd, seenBytes, countBytes                                       int32
}

type barrierP struct {
	arrived, epoch, failed, stop, at uintptr
	limit                            uint64
	ranks                            int32
}

type clockP struct {
	ask, answer, time uintptr
	limit             uint64
	before, rounds    uint32
}

type faultP struct{ hang uint64 }

type carryP struct {
	from, to, at, out uintptr
	words, calls, in  int32
}

// Those of src/fp4mma.cu.

type fp4P struct {
	w, globals, codes, scales, experts, list, offsets, y uintptr
	x, input, codesOut, scalesOut, at                    uintptr
	m, n, k, kt, ldx, ldy, topk, groups, byPair          int32
	wexpert                                              int64
}

type combine4P struct {
	rows, weights, y, at uintptr
	n, topk, ldw, ldy    int32
}

type wideP struct {
	w, x, sums, panels, y, at  uintptr
	m, n, k, ldx, ldy          int32
	per, blocks, groups, parts int32
	global, globalUp           float32
	heads, xhead, yhead        int32
	whead, panelHead           int64
	rope, pos                  uintptr
	nrope, stages              int32
}

type teamP struct {
	w, panels, y, at                               uintptr
	m, n, k, ldy, per, slices, parts, tiles, until int32
	global                                         float32
}

type headsP struct {
	w, x, y, panels, at                  uintptr
	m, n, k, ldx, ldy, per, xhead, yhead int32
	global                               float32
	whead                                int64
	rope, pos                            uintptr
	nrope                                int32
	act, actAt                           uintptr
	ldact, late                          int32
}

type wideMoeP struct {
	w, global, x, rows, list, offsets, y, at          uintptr
	m, n, k, topk, groups, ldx, byPair, per, _, count int32
	wexpert                                           int64
}

type bundleP struct {
	op, until, blocks [maxSegments]int32
	params            [maxSegments][segmentWords]uint64
}

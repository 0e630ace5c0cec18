// Code generated from src/*/*.h by gen. DO NOT EDIT.

package plan

const (
	pageTokens = 64
	stampEnds  = 8
	maxStamps  = 16384
	stampBytes = 24
	copyWords  = 4
)

type faultP struct {
	hang uint64
}

type hostCopyP struct {
	from, to, at, out uintptr
	words, calls, in  int32
}

type clockP struct {
	ask, answer, time uintptr
	limit             uint64
	before, rounds    uint32
}

const (
	mlaTile               = 32
	mlaBf16ClusterBlocks  = 16
	mlaBf16ClusterThreads = 256
	mlaBf16ClusterShared  = 176768
	mlaFp8ClusterThreads  = 256
	mlaFp8Cluster16Shared = 139776
	mlaFp8Cluster8Shared  = 231424
	mlaPersistentThreads  = 640
	mlaPersistentReach    = 2048
	mlaPersistentShared   = 228976
	mlaPersistentLeft     = 18432
)

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

const (
	maxRanks = 8
	rowParts = 8
	rowPairs = 4
)

const (
	sendPhase    = 1
	sumPhase     = 2
	receivePhase = 4
)

type commP struct {
	inbox                                                             [8]uintptr
	half                                                              uint64
	epoch, failed, stop                                               uintptr
	limit                                                             uint64
	x, y, w, res, at, panels                                          uintptr
	m, n, ldx, ldy, ldr, row0, cols, rank, ranks, phases, early, wide int32
	eps                                                               float32
	to                                                                uintptr
}

type sumP struct {
	parts, y, at uintptr
	n            int64
	ranks        int32
}

type barrierP struct {
	arrived, epoch, failed, stop, at uintptr
	limit                            uint64
	ranks                            int32
}

const (
	gemvRowBytes    = 576
	prefetchTiles   = 3
	prefetchThreads = 288
	prefetchColumns = 256
	prefetchSteps   = 2
	prefetchBars    = 128
	shortKColumns   = 128
	multiTileWidth  = 6
	multiTileSlots  = 4
	multiTileInbox  = 128
	clusterCalls    = 2
	clusterTiles    = 8
	clusterPanels   = 2
	clusterStages   = 3
	clusterRounded  = 4
)

type packP struct {
	data, scales, out     uintptr
	rows, cols, tiles, kt int32
}

type fp8BlockP struct {
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
	rounded             uint32
}

type exactP struct {
	w, globals, x, y, experts, weights, rope, pos, at                        uintptr
	m, n, k, ldx, ldy, ldw, heads, xhead, yhead, nrope, topk, groups, byPair int32
	global                                                                   float32
	wnext                                                                    int64
}

type gemvP struct {
	w, x, y, at                             uintptr
	m, n, k, ldx, ldy                       int32
	global                                  float32
	heads, tiles, share, ring, xhead, yhead int32
	whead                                   int64
	act, actAt                              uintptr
	ldact                                   int32
	rounded                                 uint32
}

type multiTileP struct {
	w, x, y, at                uintptr
	m, n, k, ldx, ldy          int32
	global                     float32
	tiles, share, width, slots int32
	rounded                    uint32
}

type absorbP struct {
	w, x, y, at, rope, pos                                      uintptr
	whead                                                       int64
	m, n, k, ldx, ldy, nrope, heads, tiles, xhead, yhead, early int32
	global                                                      float32
	rounded                                                     uint32
}

type batchedGemmP struct {
	w, x, y, panels, at                  uintptr
	m, n, k, ldx, ldy, per, xhead, yhead int32
	global                               float32
	whead                                int64
	rope, pos                            uintptr
	nrope                                int32
	act, actAt                           uintptr
	ldact, late                          int32
	rounded                              uint32
}

type clusterGemmP struct {
	w, panels, y, at                               uintptr
	m, n, k, ldy, per, slices, parts, tiles, until int32
	global                                         float32
}

type clusterGemmsP struct {
	p [2]clusterGemmP
}

type wgmmaP struct {
	w, x, sums, panels, y, at                     uintptr
	m, n, k, ldx, ldy, per, blocks, groups, parts int32
	global, globalUp                              float32
	heads, xhead, yhead                           int32
	whead, panelHead                              int64
	rope, pos                                     uintptr
	nrope, stages                                 int32
	rounded                                       uint32
}

type fp4P struct {
	w, globals, codes, scales, experts, list, offsets, y, x, input, codesOut, scalesOut, at uintptr
	m, n, k, kt, ldx, ldy, topk, groups, byPair                                             int32
	wexpert                                                                                 int64
}

type combine4P struct {
	rows, weights, y, at uintptr
	n, topk, ldw, ldy    int32
}

const (
	fp4Unit    = 576
	blockFrags = 8
	blockBytes = 2112
)

const (
	inRegisters     = 256
	routeMemory     = 14336
	upSlices        = 16
	wsK             = 6144
	wsThreads       = 640
	wsBytes         = 190704
	prologueBytes   = 28688
	prologueRows    = 8
	prologueTiles   = 3
	prologueK       = 256
	downAllSlots    = 18
	downAllExperts  = 256
	downAllRows     = 96
	downAllWarps    = 15
	downAllItem     = 6912
	downAllY        = 52
	downAllThere    = 74848
	wgmmaUpThreads  = 640
	wgmmaUpShared   = 222336
	wgmmaDownRows   = 64
	wgmmaDownRing   = 16
	wgmmaDownTile   = 272
	wgmma128Threads = 384
	wgmma128Shared  = 190544
	wgmma128Expert  = 36
)

type routeP struct {
	x, bias, experts, weights, at            uintptr
	m, n, topk, ldx, ldw, groups, keep, norm int32
	scale                                    float32
}

type groupP struct {
	experts, list, offsets, at uintptr
	pairs, groups              int32
}

type moeP struct {
	w, global, x, experts, weights, y, list, offsets, scratch, at      uintptr
	m, n, k, topk, groups, ldx, ldy, ldw, byPair, tokens, slots, early int32
	rounded                                                            uint32
	wexpert                                                            int64
}

type prologueP struct {
	route  routeP
	shared gemvP
}

type moeUpP struct {
	moe      moeP
	prologue prologueP
}

type moeWgmmaP struct {
	w, global, x, rows, list, offsets, y, at             uintptr
	m, n, k, topk, groups, ldx, byPair, per, row0, count int32
	rounded                                              uint32
	wexpert                                              int64
}

const (
	embedded = 2048
)

type rowwiseP struct {
	x, y, w, b, rope, pos, idx, res, cache, at   uintptr
	m, n, k, ldx, ldy, ldr, nrope, heads, format int32
	eps                                          float32
}

type quantP struct {
	x, y, experts, input, at    uintptr
	pairs, k, topk, ldx, byPair int32
}

const (
	opGemvBf16 = 0
	opGemvFp8  = 1
	opNorm     = 2
	opLatent   = 3
	opKey      = 4
	opRotary   = 5
	opSilu     = 6
	opRoute    = 7
)

const (
	maxSegments = 4
)

type hfuseP struct {
	op, until, blocks [4]int32
	params            [4][15]uint64
}

const (
	persistentCalls  = 2
	persistentTokens = 32
	persistentPitch  = 68
)

type persistentOneP struct {
	w, y, at            uintptr
	m, n, k, ldy, until int32
	global              float32
}

type persistentGemmP struct {
	one, two                             persistentOneP
	panels, waiting                      uintptr
	per, blocks, panelStages, unitStages int32
}

const (
	indexPagesSharedBf16 = 214016
	indexPagesSharedFp8  = 118784
	indexRowsShared      = 82944
	indexQueries         = 16512
	topStagedShared      = 109136
	topShared            = 43616
)

type indexP struct {
	q, hw, rope, cache, pages, seq, pos, scores, at, split   uintptr
	m, k, heads, nrope, span, pagesLd, ldq, ldhw, lds, early int32
	scale                                                    float32
	rounded                                                  uint32
}

type topP struct {
	scores, pos, sel, at uintptr
	topk, lds, m, waits  int32
	absorb               absorbP
}

const (
	alternatives = 20
	sampleSlices = 8
)

type params struct {
	temperature, topP, minP, repetition                             float32
	topK, logprobs, seen, last                                      int32
	seed, counter                                                   uint64
	presence, frequency                                             float32
	counts, mask, allowed, entries, biases, labels, forced, assumed int32
}

type entry struct {
	token, after int32
	bias         float32
}

type sampled struct {
	token   int32
	logprob float32
	ids     [20]int32
	logps   [20]float32
}

type sampleP struct {
	logits, params, seen, counts, masks, entries, y, work, at uintptr
	n, ld, seenBytes, maskBytes, countBytes                   int32
}

type feedP struct {
	last, from, rows, seq, pages, tokens, pos, slots, params, seen, counts, at uintptr
	m, n, pagesLd, seenBytes, countBytes                                       int32
}

type acceptP struct {
	sampled, tips, rows, tokens, pos, seq, slots, params, next, from, atPos, atSeq, atSlots, atParams, at uintptr
	m, n                                                                                                  int32
}

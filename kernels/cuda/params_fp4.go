//go:build cuda

package cuda

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

//go:build cuda

package cuda

import (
	"fmt"
	"unsafe"

	"glmbatch/kernels"

	"gorgonia.org/cu"
)

// Products of more rows than one fragment holds, on Hopper: src/wide.cu. They give
// the bits of src/gemm.cu.

// warpgroups reports whether a GPU has the instructions that src/wide*.cu is
// compiled with.
func warpgroups(dev cu.Device) bool {
	major, err := dev.Attribute(cu.ComputeCapabilityMajor)
	minor, err2 := dev.Attribute(cu.ComputeCapabilityMinor)
	return err == nil && err2 == nil && major == 9 && minor == 0
}

const (
	fewRows     = 256       // up to here, the blocks of a cluster share k
	splitRows   = 64        // from here on, products may have their inputs split beforehand
	maxUnits    = 8         // groups of 64 outputs times slices, of a block
	blockShared = 227 << 10 // bytes
)

type wideP struct {
	w, x, panels, y, at uintptr
	m, n, k, ldx, ldy   int32
	per, blocks, groups int32
	global, globalUp    float32
	heads, xhead, yhead int32
	whead, panelHead    int64
	rope, pos           uintptr
	nrope               int32
}

// wide launches a product, if it is one for src/wide.cu. blocks: of 8 slices each
// that k has.
func (d *device) wide(a *gemmP, w *weight, blocks int32) (bool, error) {
	if !d.warpgroups || a.m <= 16 || a.heads > 1 && a.m <= splitRows || a.k%64 != 0 || a.x%16 != 0 || a.ldx%4 != 0 || a.xhead%4 != 0 {
		return false, nil
	}
	p := wideP{w: a.w, x: a.x, y: a.y, at: a.at, m: a.m, n: a.n, k: a.k, ldx: a.ldx, ldy: a.ldy, blocks: blocks, global: a.global, globalUp: a.globalUp,
		heads: a.heads, xhead: a.xhead, yhead: a.yhead, whead: a.whead, rope: a.rope, pos: a.pos, nrope: a.nrope}
	f := "bf16"
	p.per = int32(ceil(int32(w.kt), 8*blocks))
	if w.format == kernels.FP4 {
		f, p.per = "fp4", 4*p.per
	}
	if a.heads == 1 && a.m <= fewRows || p.per%2 != 0 {
		return d.few(&p, f)
	}
	tokens, stages := uint32(128), uint32(4)
	if a.m <= fewRows {
		tokens, stages = 64, 8
	}
	extra := uint32(0)
	if p.rope != 0 {
		extra = 1
	}
	tiles := ceil(p.m, int32(tokens))
	p.panelHead = int64(tiles) * int64(tokens) * int64(p.k) * 4
	p.panels = d.work(scratchPanels, p.panelHead*int64(p.heads))
	if err := d.do(fmt.Sprintf("wide_split_%s_%d", f, tokens), [3]uint32{1056, uint32(p.heads), 1}, 256, 0, unsafe.Pointer(&p)); err != nil {
		return true, err
	}
	shared := stages*(tokens*256+16) + 1024
	if blocks > 1 {
		shared += tokens / 2 * 256 * 4
	}
	return true, d.do(fmt.Sprintf("wide_%s_%d", f, tokens), [3]uint32{ceil(p.n, 128) + extra, tiles, uint32(p.heads)}, 384, shared, unsafe.Pointer(&p))
}

// few shares k among the blocks of clusters, so that all of the GPU reads weights.
func (d *device) few(p *wideP, f string) (bool, error) {
	tokens := int32(16)
	for tokens < 64 && tokens < p.m {
		tokens *= 2
	}
	room := func() int32 { return int32(ceil(p.blocks*p.per, 4)) * tokens * 256 }
	for tokens > 16 && room() > blockShared-1024 {
		tokens /= 2
	}
	if room() > blockShared-1024 {
		return false, nil
	}
	all := int32(ceil(p.n, 64))
	tiles := ceil(p.m, tokens)
	best := int32(0)
	for g := int32(1); g*p.blocks <= maxUnits; g++ { // rounds of 16 clusters, each as long as its groups are many
		if cost := int32(ceil(int32(ceil(all, g)*tiles)*p.heads, 16)) * (g*p.blocks + 2); p.groups == 0 || cost < best {
			best, p.groups = cost, g
		}
	}
	extra := uint32(0)
	if p.rope != 0 {
		extra = 8
	}
	shared := uint32(max(room(), p.groups*p.blocks*tokens*68*4)) + 1024
	return true, d.do(fmt.Sprintf("few_%s_%d", f, tokens), [3]uint32{8*ceil(all, p.groups) + extra, tiles, uint32(p.heads)}, 512, shared, unsafe.Pointer(p))
}

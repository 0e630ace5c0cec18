//go:build cuda

package cuda

import (
	"fmt"
	"unsafe"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda/driver"
)

const (
	// broadBlocks is from how many blocks on, of a tile each, a product of few rows
	// is one for src/broad.cu: more than run at once.
	broadBlocks = 400
	broadWidth  = 6 // tiles of a block
	broadSlots  = 4 // pieces of weights that a warp has in shared memory
	broadInbox  = 128
)

// isBroad reports whether a call is a product for src/broad.cu.
func isBroad(c *kernels.Call) bool {
	columns := int32(16) // of a step
	switch c.Kernel {
	case "gemm_fp8":
		columns = 32
	case "gemm_bf16":
	default:
		return false
	}
	if x := c.Args[1]; c.Dims.M > bundleRows || c.Scalars[0] != 0 || (x.Offset|int64(x.Pitch))%16 != 0 || c.Dims.K%4 != 0 {
		return false
	}
	tiles := int32(ceil(c.Dims.N, 16))
	return tiles*clusterOf(tiles, int32(ceil(c.Dims.K, columns))) > broadBlocks
}

func (d *device) broad(a *gemmP, w *weight, share int32) error {
	_, limit, err := d.chip()
	if err != nil {
		return err
	}
	columns := int32(16)
	if w.format == kernels.FP8 {
		columns = 32
	}
	p := broadP{w: a.w, x: a.x, y: a.y, at: a.at, m: a.m, n: a.n, k: a.k, ldx: a.ldx, ldy: a.ldy, global: a.global, tiles: int32(w.tiles), share: share}
	steps := int32(ceil(int32(w.kt), 8*share)) // of a warp
	for p.width = broadWidth; p.width > 0; p.width /= 2 {
		x, parts := 8*p.m*(min(steps*columns, 256)*4+32), share*p.width*p.m*64
		for p.slots = min(broadSlots, int32(ceil(steps, 4)*ceil(p.width, 3))); p.slots > 0; p.slots-- {
			shared := broadInbox + 8*max(p.slots*min(p.width, 3)*2048, p.width*576) + x + parts
			if shared > limit {
				continue
			}
			if err := d.flush(); err != nil {
				return err
			}
			return d.enqueue("broad_"+string(w.format), &driver.Launch{Grid: [3]uint32{ceil(p.tiles, p.width) * uint32(share), 1, 1}, Threads: 256, Cluster: uint32(share), Shared: uint32(shared), Params: unsafe.Pointer(&p)})
		}
	}
	return fmt.Errorf("%w: a product of %dx%d on a GPU with little shared memory", kernels.ErrKernel, a.n, a.k)
}

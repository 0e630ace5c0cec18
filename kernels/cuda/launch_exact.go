//go:build cuda

package cuda

import (
	"unsafe"

	"glmbatch/kernels"
)

// exacts are the products that can be asked not to round their inputs: their
// first scalar is not 0. Products of float32 weights never round.
var exacts = map[kernels.Name]launcher{
	"gemm_bf16": exactGemm, "gemm_fp8": exactGemm, "gemm_fp4": exactGemm, "gemm_fp4a4": exactGemm, "gemm_fp4a8": exactGemm,
	"q_absorb_bf16": exactGemm, "v_up_bf16": exactGemm,
	"moe_up_bf16": exactUp, "moe_up_fp4": exactUp, "moe_up_fp4a4": exactUp, "moe_up_fp4a8": exactUp,
	"moe_down_bf16": exactDown, "moe_down_fp4": exactDown, "moe_down_fp4a4": exactDown, "moe_down_fp4a8": exactDown,
}

// launcherOf returns how a call is launched, nil if it cannot be.
func (d *device) launcherOf(c *kernels.Call) launcher {
	if f := natives[c.Kernel]; f != nil {
		if w, _ := d.weight(c.Args[0]); w.units4 != no4 {
			return f
		}
	}
	if f := exacts[c.Kernel]; f != nil && c.Scalars[0] != 0 {
		return f
	}
	return launchers[c.Kernel]
}

// exactOf fills in what all exact products share, and their kernel's suffix.
func (d *device) exactOf(c *kernels.Call, at uintptr) (exactP, string) {
	w, p := d.weight(c.Args[0])
	x, out := c.Dims, c.Args[len(c.Args)-1]
	a := exactP{w: p, x: d.ptr(c.Args[1]), y: d.ptr(out), at: at, m: x.M, n: x.N, k: x.K, heads: max(1, x.Heads), topk: x.TopK, groups: int32(w.count), global: w.global, wnext: w.each}
	if w.format != kernels.FP4 {
		return a, string(w.format)
	}
	a.globals = w.sums(c.Kernel)
	return a, "fp4"
}

func exactGemm(d *device, c *kernels.Call, at uintptr) (err error) {
	a, f := d.exactOf(c, at)
	x, extra := c.Dims, uint32(0)
	if len(c.Args) == 5 { // q_absorb
		a.rope, a.pos, a.nrope = d.ptr(c.Args[2]), d.ptr(c.Args[3]), x.Rope
		extra = 1
	}
	a.xhead, a.yhead = x.K+x.Rope, x.N+x.Rope
	a.ldx, a.ldy = ld(c.Args[1], a.heads*a.xhead), ld(c.Args[len(c.Args)-1], a.heads*a.yhead)
	if q := c.Kernel == "gemm_fp4a4"; q || c.Kernel == "gemm_fp4a8" {
		zero, err := d.zeros(x.M)
		if err != nil {
			return err
		}
		w, _ := d.weight(c.Args[0])
		if a.x, err = d.quantised(w, a.x, zero, q, x.M, x.K, 1, a.ldx, 1, at, 0); err != nil {
			return err
		}
		a.ldx = x.K
	}
	return d.do("exact_gemm_"+f, [3]uint32{ceil(x.N, 128) + extra, ceil(x.M, 8), uint32(a.heads)}, 256, 0, unsafe.Pointer(&a))
}

// chosen quantises the inputs of experts, where the kernel's format says so.
func (d *device) chosen(a *exactP, c *kernels.Call, byPair int32) (err error) {
	if four := c.Kernel == "moe_up_fp4a4" || c.Kernel == "moe_down_fp4a4"; four || c.Kernel == "moe_up_fp4a8" || c.Kernel == "moe_down_fp4a8" {
		w, _ := d.weight(c.Args[0])
		if a.x, err = d.quantised(w, a.x, a.experts, four, a.m*a.topk, a.k, a.topk, a.ldx, byPair, a.at, 0); err != nil {
			return err
		}
		a.ldx, a.byPair = a.k, 1
	}
	return nil
}

func exactUp(d *device, c *kernels.Call, at uintptr) error {
	a, f := d.exactOf(c, at)
	a.experts, a.ldx = d.ptr(c.Args[2]), ld(c.Args[1], c.Dims.K)
	if err := d.chosen(&a, c, 0); err != nil {
		return err
	}
	return d.do("exact_up_"+f, [3]uint32{ceil(a.n, 128), uint32(a.m * a.topk), 1}, 256, 0, unsafe.Pointer(&a))
}

func exactDown(d *device, c *kernels.Call, at uintptr) error {
	a, f := d.exactOf(c, at)
	a.experts, a.weights, a.ldx = d.ptr(c.Args[2]), d.ptr(c.Args[3]), ld(c.Args[1], c.Dims.K)
	a.ldw, a.ldy = ld(c.Args[3], c.Dims.TopK), ld(c.Args[4], c.Dims.N)
	if err := d.chosen(&a, c, 1); err != nil {
		return err
	}
	return d.do("exact_down_"+f, [3]uint32{ceil(a.n, 128), uint32(a.m), 1}, 256, 0, unsafe.Pointer(&a))
}

//go:build cuda

package cuda

import (
	"fmt"
	"unsafe"

	"glmbatch/kernels"
)

// directPairs is how many (token, choice) pairs are worth a group each.
const directPairs = 64

// byExpert orders the pairs by expert, once for moe_up and moe_down.
func (d *device) byExpert(a *moeP, experts kernels.Buffer, at uintptr) error {
	pairs := a.m * a.topk
	a.list = d.work(scratchLists, int64(pairs+a.groups+1)*4)
	a.offsets = a.list + uintptr(pairs)*4
	if d.grouped == experts {
		return nil
	}
	d.grouped = experts
	g := groupP{experts: a.experts, list: a.list, offsets: a.offsets, at: at, pairs: pairs, groups: a.groups}
	return d.do("moe_group", [3]uint32{8, 1, 1}, 1024, uint32(3*a.groups)*4, unsafe.Pointer(&g))
}

func moeParams(d *device, c *kernels.Call, at uintptr) (moeP, *weight, string) {
	w, p := d.weight(c.Args[0])
	x := c.Dims
	a := moeP{w: p, x: d.ptr(c.Args[1]), experts: d.ptr(c.Args[2]), at: at, m: x.M, n: x.N, k: x.K, topk: x.TopK, groups: int32(w.count),
		ldx: ld(c.Args[1], x.K), wexpert: w.each}
	if w.format == kernels.FP4 {
		a.global = w.sums(c.Kernel)
	}
	return a, w, string(w.format)
}

func moeUp(d *device, call *kernels.Call, at uintptr) (err error) {
	a, w, f := moeParams(d, call, at)
	a.y = d.ptr(call.Args[3])
	pairs := a.m * a.topk
	if a.n%16 != 0 {
		return fmt.Errorf("%w: experts of %d values a rank: a multiple of 16", kernels.ErrKernel, a.n)
	}
	if q := call.Kernel == "moe_up_fp4a4"; q || call.Kernel == "moe_up_fp4a8" {
		if a.x, err = d.quantised(w, a.x, a.experts, q, pairs, a.k, a.topk, a.ldx, 0, at, 0); err != nil {
			return err
		}
		a.ldx, a.byPair = a.k, 1
	}
	if f == "f32" {
		return d.do("moe_up_f32", [3]uint32{ceil(a.n, 8), uint32(pairs), 1}, 256, 0, unsafe.Pointer(&a))
	}
	if f == "fp4" && !d.isWideUp(&a, w) {
		return d.upExperts(a, call.Args[2])
	}
	tiles := ceil(a.n, 16)
	if pairs <= directPairs && f != "fp4" {
		return d.do("moe_up_"+f+"_8", [3]uint32{tiles, uint32(pairs), 1}, upWarps*32, 0, unsafe.Pointer(&a))
	}
	if err := d.byExpert(&a, call.Args[2], at); err != nil {
		return err
	}
	if f == "fp4" {
		return d.wideUp(&a, w)
	}
	name := "moe_up_" + f + "_8"
	if pairs > 8*a.groups {
		name = "moe_up_" + f + "_32"
	}
	return d.do(name, [3]uint32{tiles, uint32(a.groups), 1}, upWarps*32, 0, unsafe.Pointer(&a))
}

func moeDown(d *device, c *kernels.Call, at uintptr) (err error) {
	a, w, f := moeParams(d, c, at)
	a.weights, a.y, a.ldy, a.ldw = d.ptr(c.Args[3]), d.ptr(c.Args[4]), ld(c.Args[4], c.Dims.N), ld(c.Args[3], c.Dims.TopK)
	pairs := a.m * a.topk
	scratch := int64(pairs) * int64(a.n) * 4
	if q := c.Kernel == "moe_down_fp4a4"; q || c.Kernel == "moe_down_fp4a8" {
		if a.x, err = d.quantised(w, a.x, a.experts, q, pairs, a.k, a.topk, a.ldx, 1, at, scratch); err != nil {
			return err
		}
		a.ldx = a.k
	}
	if f == "f32" {
		return d.do("moe_down_f32", [3]uint32{ceil(a.n, 8), uint32(a.m), 1}, 256, 0, unsafe.Pointer(&a))
	}
	if f == "fp4" && !d.isWideDown(&a, w) {
		return d.downExperts(a, c.Args[2])
	}
	if pairs <= directPairs && f != "fp4" {
		return d.do("moe_down_"+f, [3]uint32{ceil(a.n, 16), uint32(a.m), 1}, 256, uint32(a.topk)*64, unsafe.Pointer(&a))
	}
	if err := d.byExpert(&a, c.Args[2], at); err != nil {
		return err
	}
	a.scratch = d.work(scratchWork, scratch)
	if f == "fp4" {
		return d.wideDown(&a)
	}
	name := "moe_down_" + f + "_8"
	if pairs > 8*a.groups {
		name = "moe_down_" + f + "_32"
	}
	if err := d.do(name, [3]uint32{ceil(a.n, 128), uint32(a.groups), 1}, 256, 0, unsafe.Pointer(&a)); err != nil {
		return err
	}
	return d.do("moe_combine", [3]uint32{ceil(a.n, 256), uint32(a.m), 1}, 256, 0, unsafe.Pointer(&a))
}

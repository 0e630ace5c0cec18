//go:build cuda

package cuda

import (
	"fmt"
	"unsafe"

	"glmbatch/kernels"
)

// inRegisters is how many experts moe_route keeps in registers.
const inRegisters = 256

func route(d *device, c *kernels.Call, at uintptr) error {
	x, s := c.Dims, c.Scalars
	if x.TopK > 64 || s[1] > 64 || x.Groups > 4096 || x.TopK > x.Groups {
		return fmt.Errorf("%w: %d of %d experts in %v groups", kernels.ErrKernel, x.TopK, x.Groups, s[1])
	}
	d.grouped = kernels.Buffer{}
	a := routeP{x: d.ptr(c.Args[0]), bias: d.ptr(c.Args[1]), experts: d.ptr(c.Args[2]), weights: d.ptr(c.Args[3]), at: at, m: x.M, n: x.Groups, topk: x.TopK,
		ldx: ld(c.Args[0], x.Groups), ldw: ld(c.Args[3], x.TopK), scale: s[0], groups: int32(s[1]), keep: int32(s[2]), norm: int32(s[3])}
	if segmentsOf(c) > 0 {
		const memory = 1792 // of a warp, RouteMemory
		return d.segment(segment{op: opRoute, blocks: ceil(x.M, 8), cluster: 1, shared: 8 * memory}, unsafe.Pointer(&a), unsafe.Sizeof(a))
	}
	name, shared := "moe_route", uint32(0)
	if x.Groups > inRegisters {
		name, shared = "moe_route_many", uint32(x.Groups)*4
	}
	err := d.do(name, [3]uint32{uint32(x.M), 1, 1}, 32, shared, unsafe.Pointer(&a))
	d.leads(c.Args[2])
	return err
}

//go:build cuda

package cuda

import (
	"fmt"
	"unsafe"

	"glmbatch/kernels"
)

// embedded is how many values of a row a block of embed has, as in src/rows.cu.
const embedded = 2048

func embedRows(d *device, c *kernels.Call, at uintptr) error {
	w, p := d.weight(c.Args[0])
	f := int32(0)
	if w.format == kernels.BF16 {
		f = 1
	}
	a := rowsP{cache: p, idx: d.ptr(c.Args[1]), y: d.ptr(c.Args[2]), at: at, m: c.Dims.M, n: c.Dims.N, ldy: ld(c.Args[2], c.Dims.N), format: f}
	return d.do("embed", [3]uint32{uint32(a.m), ceil(a.n, embedded), 1}, 256, 0, unsafe.Pointer(&a))
}

func rmsNorm(d *device, c *kernels.Call, at uintptr) error {
	x := c.Dims
	a := rowsP{x: d.ptr(c.Args[0]), w: d.ptr(c.Args[1]), y: d.ptr(c.Args[2]), at: at, m: x.M, k: x.K, ldx: ld(c.Args[0], x.K), ldy: ld(c.Args[2], x.K), eps: c.Scalars[0]}
	a.cache = d.leaveMany(a.y, a.m, a.k, a.ldy)
	return d.rows(opNorm, uint32(x.M), &a)
}

func addNormParams(d *device, c *kernels.Call, at uintptr) rowsP {
	n := c.Dims.N
	return rowsP{x: d.ptr(c.Args[0]), res: d.ptr(c.Args[1]), w: d.ptr(c.Args[2]), y: d.ptr(c.Args[3]), at: at, m: c.Dims.M, n: n,
		ldx: ld(c.Args[0], n), ldr: ld(c.Args[1], n), ldy: ld(c.Args[3], n), eps: c.Scalars[0]}
}

func addNorm(d *device, c *kernels.Call, at uintptr) error {
	if c.Dims.N > 8192 {
		return fmt.Errorf("%w: rows of %d values, at most 8192", kernels.ErrKernel, c.Dims.N)
	}
	a := addNormParams(d, c, at)
	a.cache = d.leaveMany(a.y, a.m, a.n, a.ldy)
	return d.do("add_norm", [3]uint32{uint32(a.m), 1, 1}, 768, 0, unsafe.Pointer(&a))
}

func siluMul(d *device, c *kernels.Call, at uintptr) error {
	x := c.Dims
	a := rowsP{x: d.ptr(c.Args[0]), y: d.ptr(c.Args[1]), at: at, m: x.M, n: x.N, ldx: ld(c.Args[0], 2*x.N), ldy: ld(c.Args[1], x.N)}
	return d.rows(opSilu, ceil(x.N, 256)*uint32(x.M), &a)
}

func gatherRows(d *device, c *kernels.Call, at uintptr) error {
	x := c.Dims
	a := rowsP{x: d.ptr(c.Args[0]), idx: d.ptr(c.Args[1]), y: d.ptr(c.Args[2]), at: at, m: x.M, n: x.N, ldx: ld(c.Args[0], x.N), ldy: ld(c.Args[2], x.N)}
	return d.do("gather_rows", [3]uint32{uint32(x.M), 1, 1}, 256, 0, unsafe.Pointer(&a))
}

// sampleSlices is as in src/sample.cu.
const sampleSlices = 8

func sample(d *device, c *kernels.Call, at uintptr) error {
	x := c.Dims
	n := x.N
	if x.TopK > 0 {
		n = min(n, x.TopK)
	}
	a := sampleP{logits: d.ptr(c.Args[0]), params: d.ptr(c.Args[1]), seen: d.ptr(c.Args[2]), y: d.ptr(c.Args[3]), at: at, n: n, ld: ld(c.Args[0], x.N), seenBytes: c.Args[2].Pitch}
	if a.seenBytes == 0 {
		a.seenBytes = (x.N + 63) / 64 * 8
	}
	a.work = d.work(scratchWork, int64(x.M)*int64(n)*4)
	return d.do("sample", [3]uint32{sampleSlices * uint32(x.M), 1, 1}, 1024, 0, unsafe.Pointer(&a))
}

// rows adds a segment that works on whole rows.
func (d *device) rows(o op, blocks uint32, a *rowsP) error {
	return d.segment(segment{op: o, blocks: blocks, cluster: 1}, unsafe.Pointer(a), unsafe.Sizeof(*a))
}

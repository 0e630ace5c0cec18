//go:build cuda

package cuda

import (
	"fmt"
	"unsafe"

	"glmbatch/kernels"

	"gorgonia.org/cu"
)

// Products of 4-bit weights and 4-bit activations, on GPUs that multiply both as
// they are: weights that were loaded for that.
var natives = map[kernels.Name]launcher{"gemm_fp4a4": nativeGemm, "moe_up_fp4a4": nativeUp, "moe_down_fp4a4": nativeDown}

// units4Of returns a GPU's, those that the images have code for.
func units4Of(dev cu.Device) units4 {
	major, err := dev.Attribute(cu.ComputeCapabilityMajor)
	minor, err2 := dev.Attribute(cu.ComputeCapabilityMinor)
	switch {
	case err != nil || err2 != nil || minor != 0:
	case major == 10:
		return tensor4
	case major == 12:
		return mma4
	}
	return no4
}

func (u units4) packer() string {
	if u == tensor4 {
		return "pack_fp4t"
	}
	return "pack_fp4a4"
}

// unitsFor returns what a weight is packed for.
func (d *device) unitsFor(ws kernels.Weights) units4 {
	if ws.Format == kernels.FP4 && ws.Use == kernels.Multiply4 {
		return d.units4
	}
	return no4
}

// fp4Of quantises the rows of a call: one for each (token, choice), or each token.
// more bytes of scratch memory, for the launcher, are at the address returned.
func (d *device) fp4Of(c *kernels.Call, byPair int32, more int64, at uintptr) (fp4P, uintptr, error) {
	w, p := d.weight(c.Args[0])
	x := c.Dims
	a := fp4P{w: p, globals: w.globals4, input: w.ins, at: at, x: d.ptr(c.Args[1]), ldx: ld(c.Args[1], x.K), m: x.M * max(1, x.TopK), n: x.N, k: x.K,
		kt: int32(w.kt), topk: max(1, x.TopK), groups: int32(w.count), byPair: byPair, wexpert: w.each}
	if x.TopK > 0 {
		a.experts = d.ptr(c.Args[2])
	}
	codes, scales := int64(a.m)*int64(a.kt)*32, round(int64(a.m)*int64(a.kt)*4, 256)
	a.codes = d.work(scratchWork, codes+scales+more)
	a.scales = a.codes + uintptr(codes)
	a.codesOut, a.scalesOut = a.codes, a.scales
	return a, a.scales + uintptr(scales), d.do("quant_fp4", [3]uint32{ceil(a.m*a.kt*4, 256), 1, 1}, 256, 0, unsafe.Pointer(&a))
}

// tile4 is the rows that a block works on at once.
func tile4(rows, groups int32) int32 {
	if rows > 8*groups {
		return 32
	}
	return 8
}

// tensor4 is the product of all kernels on tensor memory.
func (d *device) tensor4(a *fp4P, w *weight, groups uint32, t int32, chunks uint32) error {
	name := "fp4_tensor_16"
	if t > 16 {
		name = "fp4_tensor_32"
	}
	return d.do(name, [3]uint32{uint32(w.tiles), groups, chunks}, 128, 0, unsafe.Pointer(a))
}

func nativeGemm(d *device, c *kernels.Call, at uintptr) error {
	a, _, err := d.fp4Of(c, 1, 0, at)
	if err != nil {
		return err
	}
	a.y, a.ldy = d.ptr(c.Args[2]), ld(c.Args[2], a.n)
	if w, _ := d.weight(c.Args[0]); w.units4 == tensor4 {
		t := tile4(a.m, 1)
		return d.tensor4(&a, w, 1, t, ceil(a.m, max(16, t)))
	}
	t := tile4(a.m, 1)
	return d.do(fmt.Sprintf("gemm_fp4a4_%d", t), [3]uint32{ceil(a.n, 16), ceil(a.m, t), 1}, 256, 0, unsafe.Pointer(&a))
}

// groups4 groups the rows by expert where there are many. It returns the groups and
// the rows that a block works on.
func (d *device) groups4(a *fp4P, c *kernels.Call) (uint32, int32, error) {
	if a.m <= directPairs {
		return uint32(a.m), 8, nil
	}
	w, _ := d.weight(c.Args[0])
	m := moeP{experts: a.experts, m: c.Dims.M, topk: c.Dims.TopK, groups: int32(w.count)}
	if err := d.byExpert(&m, c.Args[2], a.at); err != nil {
		return 0, 0, err
	}
	a.list, a.offsets = m.list, m.offsets
	return uint32(w.count), tile4(a.m, int32(w.count)), nil
}

func nativeUp(d *device, c *kernels.Call, at uintptr) error {
	if c.Dims.N%16 != 0 {
		return fmt.Errorf("%w: experts of %d values a rank: a multiple of 16", kernels.ErrKernel, c.Dims.N)
	}
	n, pairs := c.Dims.N, c.Dims.M*c.Dims.TopK
	a, both, err := d.fp4Of(c, 0, int64(pairs)*int64(n)*8, at)
	if err != nil {
		return err
	}
	a.y = d.ptr(c.Args[3])
	groups, t, err := d.groups4(&a, c)
	if err != nil {
		return err
	}
	if w, _ := d.weight(c.Args[0]); w.units4 == tensor4 {
		b := rowsP{x: both, y: a.y, at: at, m: pairs, n: n, ldx: 2 * n, ldy: n}
		a.y, a.n, a.ldy = both, 2*n, 2*n
		if err := d.tensor4(&a, w, groups, t, 1); err != nil {
			return err
		}
		return d.rows(opSilu, ceil(n, 256)*uint32(pairs), &b)
	}
	return d.do(fmt.Sprintf("moe_up_fp4a4_%d", t), [3]uint32{ceil(a.n, 16), groups, 1}, 256, 0, unsafe.Pointer(&a))
}

func nativeDown(d *device, c *kernels.Call, at uintptr) error {
	pairs := int64(c.Dims.M) * int64(c.Dims.TopK)
	a, rows, err := d.fp4Of(c, 1, pairs*int64(c.Dims.N)*4, at)
	if err != nil {
		return err
	}
	a.y, a.ldy = rows, a.n
	groups, t, err := d.groups4(&a, c)
	if err != nil {
		return err
	}
	if w, _ := d.weight(c.Args[0]); w.units4 == tensor4 {
		err = d.tensor4(&a, w, groups, t, 1)
	} else {
		err = d.do(fmt.Sprintf("moe_down_fp4a4_%d", t), [3]uint32{ceil(a.n, 128), groups, 1}, 256, 0, unsafe.Pointer(&a))
	}
	if err != nil {
		return err
	}
	b := combine4P{rows: rows, weights: d.ptr(c.Args[3]), y: d.ptr(c.Args[4]), at: at, n: a.n, topk: a.topk, ldw: ld(c.Args[3], a.topk), ldy: ld(c.Args[4], a.n)}
	return d.do("combine_fp4a4", [3]uint32{ceil(a.n, 256), uint32(c.Dims.M), 1}, 256, 0, unsafe.Pointer(&b))
}

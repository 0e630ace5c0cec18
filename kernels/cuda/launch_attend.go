//go:build cuda

package cuda

import (
	"fmt"
	"unsafe"

	"glmbatch/kernels"
)

// latentWay is how a kernel for entries of 512 latents and 64 rotary values is
// launched: blocks of eight heads of a row, threads and shared memory of a block, as
// its source has them.
type latentWay struct{ blocks, threads, shared uint32 }

// latentWays are those kernels. The ones for FP8 entries give the same bits.
var latentWays = map[string]latentWay{
	"mla_attend_glm_bf16":  {16, 256, 27264 + 128*1168},
	"mla_attend_few_16":    {16, 256, 55808 + 128*656},
	"mla_attend_few_8":     {8, 512, 63488 + 256*656},
	"mla_attend_rows4_fp8": {4, 640, rowsShared},
	"mla_attend_rows2_fp8": {2, 640, rowsShared},
	"mla_attend_rows_fp8":  {1, 640, rowsShared},
}

// Of src/attend_rows.cu: positions of a row, at most; bytes of a block, and of what it
// takes from the others of its row.
const (
	rowsReach  = 2048
	rowsShared = 228976
	rowsLeft   = 18432
)

// attendsLatent is whether the GPU has what those kernels need.
func (d *device) attendsLatent(format string) bool {
	n := "mla_attend_few_16"
	if format == "bf16" {
		n = "mla_attend_glm_bf16"
	}
	_, ok := d.funcs[n]
	return ok && format != "f32"
}

// latentKernel is the fastest of them for so many rows (of eight heads) of at most
// reach positions. Where ranks share the GPU blocks of theirs may wait for this rank's,
// and clusters might not find enough multiprocessors beside them.
func latentKernel(format string, rows uint32, reach, sms int32, shared bool) string {
	switch {
	case format == "bf16":
		return "mla_attend_glm_bf16"
	case shared && reach <= rowsReach:
		return "mla_attend_rows_fp8"
	case rows <= 7: // an H200 has seven clusters of 16 multiprocessors
		return "mla_attend_few_16"
	case rows <= 14 || reach > rowsReach:
		return "mla_attend_few_8"
	case rows <= 21:
		return "mla_attend_few_16"
	case 4*rows <= uint32(sms): // all of its blocks run at once
		return "mla_attend_rows4_fp8"
	case 2*rows <= uint32(sms): // a cluster has one row only
		return "mla_attend_rows2_fp8"
	}
	return "mla_attend_rows_fp8"
}

// attendLatent launches one of them.
func (d *device) attendLatent(a *attendP, format string, reach int32) error {
	sms, _, err := d.chip()
	if err != nil {
		return err
	}
	groups := ceil(a.heads, 8)
	rows := uint32(a.m) * groups
	name := latentKernel(format, rows, reach, sms, d.group.shared())
	w := latentWays[name]
	grid := [3]uint32{w.blocks, uint32(a.m), groups}
	if w.shared == rowsShared { // one after the other
		grid = [3]uint32{min(w.blocks*rows, uint32(sms)), 1, 1}
	}
	if w.shared == rowsShared && w.blocks > 2 {
		// Ones: kAbsent of src/latent.cuh, which kernels find and leave there.
		if a.part, err = d.filled("absent", int64(sms)*rowsLeft, 0xff); err != nil {
			return err
		}
	}
	return d.do(name, grid, w.threads, w.shared, unsafe.Pointer(a))
}

// attendRows bounds the rows whose splits are in scratch memory at once; attendTile
// is the positions of a split, as in src/attend.cu.
const (
	attendRows = 256
	attendTile = 32
)

func attend(d *device, c *kernels.Call, at uintptr) error {
	x := c.Dims
	_, f := format(c.Kernel)
	if x.K%16 != 0 || x.Rope%16 != 0 {
		return fmt.Errorf("%w: latents of %d+%d values: multiples of 16", kernels.ErrKernel, x.K, x.Rope)
	}
	a := attendP{cache: d.ptr(c.Args[1]), pages: d.ptr(c.Args[2]), at: at, k: x.K, nrope: x.Rope, heads: x.Heads, pagesLd: pageRow(c.Args[2]),
		ldq: ld(c.Args[0], x.Heads*(x.K+x.Rope)), ldy: ld(c.Args[6], x.Heads*x.K), scale: c.Scalars[0]}
	reach := a.pagesLd * kernels.PageTokens // positions a row can attend to
	if x.TopK > 0 {
		a.topk, reach = x.TopK, x.TopK
	} else if x.N > 0 {
		reach = min(reach, x.N)
	}
	if d.attendsLatent(f) && x.K == 512 && x.Rope == 64 {
		a.q, a.y, a.seq, a.pos, a.m = d.ptr(c.Args[0]), d.ptr(c.Args[6]), d.ptr(c.Args[3]), d.ptr(c.Args[4]), x.M
		if x.TopK > 0 {
			a.sel = d.ptr(c.Args[5])
		}
		return d.attendLatent(&a, f, reach)
	}
	a.splits = int32(ceil(reach, attendTile))
	rows := min(x.M, attendRows)
	a.part = d.work(scratchWork, int64(rows)*int64(a.splits)*int64(x.Heads)*int64(x.K+2)*4)
	blocks, width := (x.K+127)/128, x.K+x.Rope
	const t = attendTile
	shared := uint32(t*(width+8)*2 + 4*t*8*4 + 8*(t+8)*4 + t*blocks*4 + t*4)
	if f == "f32" {
		shared = uint32(t*(width+1)*4 + 8*t*4 + t*4)
	}
	for m := int32(0); m < x.M; m += rows {
		a.m = min(rows, x.M-m)
		off := uintptr(m) * 4
		a.q, a.y = d.ptr(c.Args[0])+off*uintptr(a.ldq), d.ptr(c.Args[6])+off*uintptr(a.ldy)
		a.seq, a.pos = d.ptr(c.Args[3])+off, d.ptr(c.Args[4])+off
		if x.TopK > 0 {
			a.sel = d.ptr(c.Args[5]) + off*uintptr(x.TopK)
		}
		if err := d.do("mla_attend_"+f, [3]uint32{uint32(a.splits), uint32(a.m), ceil(x.Heads, 8)}, 256, shared, unsafe.Pointer(&a)); err != nil {
			return err
		}
		if err := d.do("mla_combine", [3]uint32{uint32(x.Heads), ceil(x.K, 64), uint32(a.m)}, 256, uint32(a.splits)*4, unsafe.Pointer(&a)); err != nil {
			return err
		}
	}
	return nil
}

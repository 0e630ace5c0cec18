package plan

import (
	"fmt"

	"glmbatch/kernels"
)

// Weight is Count packed matrices in one allocation: all data, then for FP4
// (global, global of the upper half) pairs, the same times the input scale, and
// input scales.
type Weight struct {
	Format            kernels.Format
	Use               kernels.Use
	Count, Rows, Cols int
	Units4            Units4 // FP4 is packed for these, and multiplied with 4-bit activations only

	Tiles, Steps int   // of 16 outputs (tcgen05: 128); of 16 columns (FP8: 32, FP4: 64; FP8B: 16)
	Each         int64 // bytes from one matrix to the next

	Globals, Inputs  uintptr
	Globals4         uintptr // of sums of 4-bit activations, which come without their input scale
	Global, GlobalUp float32 // of matrix 0
	Input            float32 // likewise
}

// FP4Sums is what FP4 products come out divided by, which the per-tensor scales make up
// for. Matrix units for 4-bit operands divide by nothing.
const FP4Sums = 1 << 7

// Plain reports whether a weight stays as the checkpoint has it.
func (w *Weight) Plain() bool { return w.Use == kernels.Gather || w.Format == kernels.F32 }

// Layout works out how the matrices are packed, and the bytes that all of it takes.
func (w *Weight) Layout() (bytes int64, err error) {
	w.Tiles = (w.Rows + 15) / 16
	switch {
	case w.Plain():
		w.Each = kernels.WeightBytes(w.Format, int64(w.Rows), int64(w.Cols))
	case w.Format == kernels.BF16:
		w.Steps = (w.Cols + 15) / 16
		w.Each = int64(w.Tiles) * int64(w.Steps) * 512
	case w.Format == kernels.FP8:
		w.Steps = (w.Cols + 31) / 32
		w.Each = int64(w.Tiles) * int64(w.Steps) * 512
	case w.Format == kernels.FP8B:
		w.Steps = (w.Cols + 15) / 16
		w.Each = int64(w.Tiles) * int64((w.Steps+blockFrags-1)/blockFrags) * blockBytes
	case w.Units4 == Tensor4:
		w.Tiles, w.Steps = (w.Rows+127)/128, (w.Cols+63)/64
		w.Each = int64(w.Tiles) * int64(w.Steps) * 4608
	case w.Format == kernels.FP4:
		w.Steps = (w.Cols + 63) / 64
		w.Each = int64(w.Tiles) * int64(w.Steps) * fp4Unit
	default:
		return 0, fmt.Errorf("%w: %s weights", kernels.ErrKernel, w.Format)
	}
	w.Each = round(w.Each, 256)
	return int64(w.Count) * (w.Each + 20), nil
}

// Place says where the weight is.
func (w *Weight) Place(ptr uintptr) {
	w.Globals = ptr + uintptr(int64(w.Count)*w.Each)
	w.Globals4 = w.Globals + uintptr(8*w.Count)
	w.Inputs = w.Globals4 + uintptr(8*w.Count)
}

// sums is where the experts' scales of the sums of a kernel's inputs are.
func (w *Weight) sums(inputs kernels.Format) uintptr {
	if inputs == kernels.FP4 {
		return w.Globals4
	}
	return w.Globals
}

// Pack is the launch that packs a matrix, data and scales as the checkpoint has them.
func (w *Weight) Pack(data, scales, out uintptr) Launch {
	if w.Format == kernels.FP8B {
		return w.packFp8Block(data, scales, out)
	}
	entry := "pack_" + string(w.Format)
	switch w.Units4 {
	case MMA4:
		entry = "pack_fp4a4_mma"
	case Tensor4:
		entry = "pack_fp4a4_tcgen05"
	}
	blocks := min(int64(w.Tiles)*int64(w.Steps)*128/256+1, 8192)
	return Launch{Entry: entry, Grid: grid1(uint32(blocks)), Threads: 256,
		Params: &packP{data: data, scales: scales, out: out, rows: int32(w.Rows), cols: int32(w.Cols),
			tiles: int32(w.Tiles),
			kt:    int32(w.Steps)}}
}

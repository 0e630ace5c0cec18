//go:build cuda

package cuda

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"unsafe"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda/driver"

	"gorgonia.org/cu"
)

// weight is Count packed matrices in one allocation: all data, then for FP4
// (global, global of the upper half) pairs, the same times the input scale, and
// input scales.
type weight struct {
	format            kernels.Format
	use               kernels.Use
	count, rows, cols int
	tiles, kt         int
	each              int64 // bytes from one matrix to the next
	globals, ins      uintptr
	globals4          uintptr // of sums of 4-bit activations, which come without their input scale
	global, globalUp  float32 // of matrix 0
	input             float32 // likewise
	units4            units4  // FP4 is packed for these, and multiplied with 4-bit activations only
}

// FP4 products come out divided by fp4Sums, which the per-tensor scales make up for.
const fp4Sums = 1 << 7

func round(n, to int64) int64 { return (n + to - 1) / to * to }

func (w *weight) layout() (bytes int64, err error) {
	w.tiles = (w.rows + 15) / 16
	switch {
	case w.use == kernels.Gather || w.format == kernels.F32:
		w.each = kernels.WeightBytes(w.format, int64(w.rows), int64(w.cols))
	case w.format == kernels.BF16:
		w.kt = (w.cols + 15) / 16
		w.each = int64(w.tiles) * int64(w.kt) * 512
	case w.format == kernels.FP8:
		w.kt = (w.cols + 31) / 32
		w.each = int64(w.tiles) * int64(w.kt) * 512
	case w.units4 == tensor4:
		w.tiles, w.kt = (w.rows+127)/128, (w.cols+63)/64
		w.each = int64(w.tiles) * int64(w.kt) * 4608
	case w.format == kernels.FP4:
		w.kt = (w.cols + 63) / 64
		w.each = int64(w.tiles) * int64(w.kt) * 576
	default:
		return 0, fmt.Errorf("%w: %s weights", kernels.ErrKernel, w.format)
	}
	w.each = round(w.each, 256)
	return int64(w.count) * (w.each + 20), nil
}

// sums is where the experts' scales of a kernel's sums are.
func (w *weight) sums(k kernels.Name) uintptr {
	if strings.HasSuffix(string(k), "fp4a4") {
		return w.globals4
	}
	return w.globals
}

// Load streams the matrices through a staging area on the GPU, where a kernel
// packs each; the stream keeps the next from overtaking it.
func (d *device) Load(ws kernels.Weights, _ kernels.Sharing) (b kernels.Buffer, err error) {
	if err = d.use(); err != nil {
		return b, err
	}
	w := &weight{format: ws.Format, use: ws.Use, count: ws.Count, rows: ws.Rows, cols: ws.Cols, global: 1}
	if ws.Count < 1 || ws.Rows < 1 || ws.Cols < 1 {
		return b, fmt.Errorf("load %s: %d matrices of %dx%d", ws.Name, ws.Count, ws.Rows, ws.Cols)
	}
	w.units4 = d.unitsFor(ws)
	bytes, err := w.layout()
	if err != nil {
		return b, fmt.Errorf("load %s: %w", ws.Name, err)
	}
	ptr, err := d.malloc(bytes)
	if err != nil {
		return b, fmt.Errorf("load %s: %w", ws.Name, err)
	}
	w.globals = ptr + uintptr(int64(w.count)*w.each)
	w.globals4 = w.globals + uintptr(8*w.count)
	w.ins = w.globals4 + uintptr(8*w.count)
	if err := d.fill(ptr, w, &ws); err != nil {
		cu.MemFree(cu.DevicePtr(ptr))
		return b, fmt.Errorf("load %s: %w", ws.Name, err)
	}
	return d.add(buffer{ptr: ptr, bytes: bytes, w: w}), nil
}

func (d *device) fill(ptr uintptr, w *weight, ws *kernels.Weights) error {
	raw := kernels.WeightBytes(w.format, int64(w.rows), int64(w.cols))
	plain := w.use == kernels.Gather || w.format == kernels.F32
	var stage uintptr
	var err error
	if !plain {
		if stage, err = d.stageFor(raw); err != nil {
			return err
		}
	}
	slots, err := d.loading.slots(int(raw))
	if err != nil {
		return err
	}
	r := newReader(ws, len(d.group.ranks), slots)
	defer r.close()
	globals, ins := make([]byte, 16*w.count), make([]byte, 4*w.count)
	for i := range w.count {
		m, err := r.matrix(i)
		if err != nil {
			return err
		}
		if int64(len(m.Data)+len(m.Scales)) < raw {
			return fmt.Errorf("matrix %d has %d bytes, its %dx%d values in %s need %d", i, len(m.Data)+len(m.Scales), w.rows, w.cols, w.format, raw)
		}
		dst := ptr + uintptr(int64(i)*w.each)
		if plain {
			if err := errors.Join(d.bring(dst, m.Data[:raw], m.slot), m.slot.used(d.stream)); err != nil {
				return err
			}
			continue
		}
		p := packP{data: stage, scales: stage + uintptr(len(m.Data)), out: dst,
			rows: int32(w.rows), cols: int32(w.cols), tiles: int32(w.tiles), kt: int32(w.kt)}
		if err := errors.Join(d.bring(stage, m.Data, m.slot), d.bring(p.scales, m.Scales, m.slot), m.slot.used(d.stream)); err != nil {
			return err
		}
		name := "pack_" + string(w.format)
		if i == 0 && w.format == kernels.FP8 && m.Global != 0 {
			w.global = m.Global
		}
		if w.format == kernels.FP4 {
			global, up := m.Global*fp4Sums, m.GlobalUp*fp4Sums
			if w.units4 != no4 {
				global, up, name = m.Global, m.GlobalUp, w.units4.packer()
			}
			if up == 0 {
				up = global
			}
			for j, v := range [2]float32{global, up} {
				binary.LittleEndian.PutUint32(globals[8*i+4*j:], math.Float32bits(v))
				binary.LittleEndian.PutUint32(globals[8*(w.count+i)+4*j:], math.Float32bits(v*m.Input))
			}
			binary.LittleEndian.PutUint32(ins[4*i:], math.Float32bits(m.Input))
			if i == 0 {
				w.global, w.globalUp, w.input = global, up, m.Input
			}
		}
		blocks := uint32(min(int64(w.tiles)*int64(w.kt)*128/256+1, 8192))
		if err := d.do(name, [3]uint32{blocks, 1, 1}, 256, 0, unsafe.Pointer(&p)); err != nil {
			return err
		}
	}
	if w.format == kernels.FP4 {
		if err := errors.Join(d.copyIn(w.globals, globals), d.copyIn(w.ins, ins)); err != nil {
			return err
		}
	}
	if err := driver.Sync(d.stream); err != nil {
		return fmt.Errorf("%w: pack %d matrices: %w", kernels.ErrDevice, w.count, err)
	}
	return nil
}

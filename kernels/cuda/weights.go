//go:build cuda

package cuda

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda/driver"
	"glmbatch/kernels/cuda/plan"

	"gorgonia.org/cu"
)

// Load streams the matrices through a staging area on the GPU, where a kernel
// packs each; the stream keeps the next from overtaking it.
func (d *device) Load(ws kernels.Weights, _ kernels.Sharing) (b kernels.Buffer, err error) {
	if err = d.use(); err != nil {
		return b, err
	}
	w := &plan.Weight{Format: ws.Format, Use: ws.Use, Count: ws.Count, Rows: ws.Rows, Cols: ws.Cols, Global: 1}
	if ws.Count < 1 || ws.Rows < 1 || ws.Cols < 1 {
		return b, fmt.Errorf("load %s: %d matrices of %dx%d", ws.Name, ws.Count, ws.Rows, ws.Cols)
	}
	if ws.Format == kernels.FP4 && ws.Use == kernels.Multiply4 {
		w.Units4 = d.target.Units4
	}
	bytes, err := w.Layout()
	if err != nil {
		return b, fmt.Errorf("load %s: %w", ws.Name, err)
	}
	ptr, err := d.malloc(bytes)
	if err != nil {
		return b, fmt.Errorf("load %s: %w", ws.Name, err)
	}
	w.Place(ptr)
	if err := d.fill(ptr, w, &ws); err != nil {
		cu.MemFree(cu.DevicePtr(ptr))
		return b, fmt.Errorf("load %s: %w", ws.Name, err)
	}
	return d.add(plan.Buffer{Ptr: ptr, Bytes: bytes, Weight: w}), nil
}

func (d *device) fill(ptr uintptr, w *plan.Weight, ws *kernels.Weights) error {
	raw := kernels.WeightBytes(w.Format, int64(w.Rows), int64(w.Cols))
	plain := w.Plain()
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
	globals, ins := make([]byte, 16*w.Count), make([]byte, 4*w.Count)
	for i := range w.Count {
		m, err := r.matrix(i)
		if err != nil {
			return err
		}
		if int64(len(m.Data)+len(m.Scales)) < raw {
			return fmt.Errorf("matrix %d has %d bytes, its %dx%d values in %s need %d", i,
				len(m.Data)+len(m.Scales), w.Rows,
				w.Cols, w.Format, raw)
		}
		dst := ptr + uintptr(int64(i)*w.Each)
		if plain {
			if err := errors.Join(d.bring(dst, m.Data[:raw], m.slot), m.slot.used(d.stream)); err != nil {
				return err
			}
			continue
		}
		scales := stage + uintptr(len(m.Data))
		if err := errors.Join(d.bring(stage, m.Data, m.slot), d.bring(scales, m.Scales, m.slot),
			m.slot.used(d.stream)); err != nil {
			return err
		}
		if i == 0 && w.Format == kernels.FP8 && m.Global != 0 {
			w.Global = m.Global
		}
		if w.Format == kernels.FP4 {
			global, up := m.Global*plan.FP4Sums, m.GlobalUp*plan.FP4Sums
			if w.Units4 != plan.No4 {
				global, up = m.Global, m.GlobalUp
			}
			if up == 0 {
				up = global
			}
			for j, v := range [2]float32{global, up} {
				binary.LittleEndian.PutUint32(globals[8*i+4*j:], math.Float32bits(v))
				binary.LittleEndian.PutUint32(globals[8*(w.Count+i)+4*j:], math.Float32bits(v*m.Input))
			}
			binary.LittleEndian.PutUint32(ins[4*i:], math.Float32bits(m.Input))
			if i == 0 {
				w.Global, w.GlobalUp, w.Input = global, up, m.Input
			}
		}
		l := w.Pack(stage, scales, dst)
		if err := d.launch(&l); err != nil {
			return err
		}
	}
	if w.Format == kernels.FP4 {
		if err := errors.Join(d.copyIn(w.Globals, globals), d.copyIn(w.Inputs, ins)); err != nil {
			return err
		}
	}
	if err := driver.Sync(d.stream); err != nil {
		return fmt.Errorf("%w: pack %d matrices: %w", kernels.ErrDevice, w.Count, err)
	}
	return nil
}

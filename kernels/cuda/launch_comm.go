//go:build cuda

package cuda

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"glmbatch/kernels"
)

func allReduceNorm(d *device, c *kernels.Call, at uintptr) error {
	if len(d.group.ranks) == 1 {
		return addNorm(d, c, at)
	}
	a := addNormParams(d, c, at)
	var err error
	if a.parts, err = d.peers(c.Args[0]); err != nil {
		return err
	}
	a.ranks = int32(len(d.group.ranks))
	return errors.Join(d.barrier(at), d.do("add_norm", [3]uint32{uint32(a.m), 1, 1}, 1024, 0, unsafe.Pointer(&a)), d.barrier(at))
}

func allGather(d *device, c *kernels.Call, at uintptr) error {
	n := int32(len(d.group.ranks))
	a := rowsP{y: d.ptr(c.Args[1]), at: at, m: c.Dims.M, n: c.Dims.N, ldx: ld(c.Args[0], c.Dims.N/n), ldy: ld(c.Args[1], c.Dims.N), ranks: n}
	if c.Dims.N%n != 0 {
		return fmt.Errorf("%w: %d columns on %d ranks", kernels.ErrKernel, c.Dims.N, n)
	}
	var err error
	if a.parts, err = d.peers(c.Args[0]); err != nil {
		return err
	}
	run := func() error {
		return d.do("all_gather", [3]uint32{ceil(a.n, 1024), uint32(a.m), 1}, 256, 0, unsafe.Pointer(&a))
	}
	if n == 1 {
		return run()
	}
	return errors.Join(d.barrier(at), run(), d.barrier(at))
}

// barrier waits until every rank has come as far.
func (d *device) barrier(at uintptr) error {
	a := barrierP{arrived: d.group.arrived, epoch: d.epoch, failed: d.epoch + 8, at: at, limit: uint64(d.group.options.StepTimeout), ranks: int32(len(d.group.ranks))}
	return d.do("barrier", [3]uint32{1, 1, 1}, 32, 0, unsafe.Pointer(&a))
}

// peers returns a device array of every rank's address of b.
func (d *device) peers(b kernels.Buffer) (uintptr, error) {
	k := fmt.Sprintf("%d+%d", b.Index, b.Offset)
	if t, ok := d.tables[k]; ok {
		return t, nil
	}
	var ps []byte
	for _, r := range d.group.ranks {
		ps = binary.LittleEndian.AppendUint64(ps, uint64(r.bufs[b.Index-1].ptr)+uint64(b.Offset))
	}
	t, err := d.malloc(int64(len(ps)))
	if err != nil {
		return 0, err
	}
	d.tables[k] = t
	return t, d.copyIn(t, ps)
}

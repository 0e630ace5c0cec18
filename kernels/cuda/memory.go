//go:build cuda

package cuda

import (
	"errors"
	"fmt"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda/driver"
	"glmbatch/kernels/cuda/plan"

	"gorgonia.org/cu"
)

// memory owns what a rank has on its GPU: buffers and weights, scratch memory and
// constants, as plans see them.
type memory struct {
	plan.Memory
	gpu  int
	name string              // of the GPU
	have [plan.Regions]int64 // scratch memory grows before a list first runs, never in a step
}

func gib(bytes int64) string { return fmt.Sprintf("%.3f GiB", float64(bytes)/(1<<30)) }

// malloc allocates. Its error says what is free.
func (m *memory) malloc(bytes int64) (uintptr, error) {
	p, err := cu.MemAlloc(max(bytes, 256))
	if err != nil {
		if err = driver.Of(err); err != driver.OutOfMemory {
			return 0, fmt.Errorf("%w: allocate on GPU %d: %w", kernels.ErrDevice, m.gpu, err)
		}
		free, total, _ := cu.MemInfo()
		return 0, fmt.Errorf("%w: %s wanted on GPU %d, %s, which has %s of %s free", kernels.ErrMemory,
			gib(bytes), m.gpu,
			m.name, gib(free), gib(total))
	}
	return uintptr(p), nil
}

// add makes a buffer of what was allocated.
func (m *memory) add(b plan.Buffer) kernels.Buffer {
	m.Buffers = append(m.Buffers, b)
	return kernels.Buffer{Index: uint32(len(m.Buffers)), Len: b.Bytes}
}

// find checks that b lies within an allocation of this rank.
func (m *memory) find(b kernels.Buffer) (*plan.Buffer, error) {
	if b.Index == 0 || int(b.Index) > len(m.Buffers) {
		return nil, fmt.Errorf("%w: no buffer %d", kernels.ErrKernel, b.Index)
	}
	x := &m.Buffers[b.Index-1]
	if b.Offset < 0 || b.Len < 0 || b.Offset > x.Bytes || b.Len > x.Bytes-b.Offset {
		return nil, fmt.Errorf("%w: bytes %d+%d of buffer %d, which has %d", kernels.ErrKernel, b.Offset,
			b.Len, b.Index,
			x.Bytes)
	}
	return x, nil
}

// ptr is the address of a buffer that was found.
func (m *memory) ptr(b kernels.Buffer) uintptr {
	if b.Index == 0 {
		return 0
	}
	return m.Buffers[b.Index-1].Ptr + uintptr(b.Offset)
}

// check reports a call whose arguments are not what its kernel wants.
func (m *memory) check(c *kernels.Call) error {
	if err := c.Check(); err != nil {
		return err
	}
	k := kernels.Lookup(c.Kernel)
	for i, a := range c.Args {
		if a.Index == 0 && !k.Args[i].Optional {
			return fmt.Errorf("%w: %s has no argument %s", kernels.ErrKernel, c.Kernel, k.Args[i].Name)
		}
		if a.Index == 0 {
			continue
		}
		b, err := m.find(a)
		if err != nil {
			return fmt.Errorf("%s, argument %s: %w", c.Kernel, k.Args[i].Name, err)
		}
		if (k.Args[i].Role == kernels.Weight) != (b.Weight != nil) {
			return fmt.Errorf("%w: %s, argument %s: a weight and a plain buffer are confused",
				kernels.ErrKernel, c.Kernel,
				k.Args[i].Name)
		}
	}
	return nil
}

// grow makes room for what a plan wants. idle is called before memory that may be in use
// goes: it returns when nothing uses it any more.
func (m *memory) grow(p *plan.Plan, stream cu.Stream, idle func() error) (err error) {
	for r, need := range p.Scratch {
		if need <= m.have[r] {
			continue
		}
		if m.Scratch[r] != 0 {
			if err := idle(); err != nil {
				return err
			}
			cu.MemFree(cu.DevicePtr(m.Scratch[r]))
			m.Scratch[r], m.have[r] = 0, 0
		}
		if m.Scratch[r], err = m.malloc(need); err != nil {
			return err
		}
		m.have[r] = need
	}
	for _, c := range p.Missing {
		at, err := m.malloc(c.Bytes)
		if err != nil {
			return err
		}
		if err := driver.Set(at, c.Fill, c.Bytes, stream); err != nil {
			return errors.Join(fmt.Errorf("%w: fill %s: %w", kernels.ErrDevice, c.Name, err),
				cu.MemFree(cu.DevicePtr(at)))
		}
		if m.Constants == nil {
			m.Constants = map[plan.Constant]uintptr{}
		}
		m.Constants[c] = at
	}
	return nil
}

// close frees all of it.
func (m *memory) close() {
	for _, b := range m.Buffers {
		cu.MemFree(cu.DevicePtr(b.Ptr))
	}
	for _, at := range m.Constants {
		cu.MemFree(cu.DevicePtr(at))
	}
	for _, at := range m.Scratch {
		if at != 0 {
			cu.MemFree(cu.DevicePtr(at))
		}
	}
	m.Memory, m.have = plan.Memory{}, [plan.Regions]int64{}
}

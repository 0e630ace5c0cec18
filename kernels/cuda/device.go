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

// device is one rank: what it has on its GPU, and what plans and launches its lists.
type device struct {
	group  *group
	rank   int
	ctx    cu.CUContext
	info   kernels.Info
	target plan.Target

	memory         // buffers, scratch memory
	queue          // the stream, and what is launched on it
	graphs  graphs // of lists that came before
	flights flights
	stamps  stamps
	clock   clock
	asides  asides

	stage   []byte  // pinned, for copies that are waited for
	pipe    pipe    // for copies to the GPU
	loading loading // of weights
	lists   int     // started, while a fault is asked for
}

const stageBytes = 4 << 20

// maxSharedOptin is CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, which cu lacks.
const maxSharedOptin cu.DeviceAttribute = 97

// newDevice opens a rank; mates are the group's ranks on that GPU so far.
func newDevice(g *group, rank, gpu int, mates []*device) (d *device, err error) {
	d = &device{group: g, rank: rank, memory: memory{gpu: gpu}, queue: queue{funcs: map[string]cu.Function{}}}
	dev := cu.Device(gpu)
	if d.ctx, err = dev.RetainPrimaryCtx(); err != nil {
		return nil, fmt.Errorf("%w: open the GPU: %w", kernels.ErrDevice, driver.Of(err))
	}
	if err = d.use(); err != nil {
		return nil, err
	}
	if d.info, d.target, err = describe(dev, g.options.units4); err != nil {
		return nil, err
	}
	d.name = d.info.Name
	if err = d.loadImages(mates); err != nil {
		return nil, fmt.Errorf("%s, %s: %w", d.info.Name, d.info.Detail, err)
	}
	if d.stream, err = cu.MakeStream(cu.NonBlocking); err != nil {
		return nil, err
	}
	if d.stage, err = driver.Pinned(stageBytes); err != nil {
		return nil, fmt.Errorf("%w: pinned host memory: %w", kernels.ErrMemory, err)
	}
	if err = errors.Join(d.pipe.open(), d.flights.open()); err != nil {
		return nil, err
	}
	if d.Group.Epoch, err = d.malloc(16); err != nil {
		return nil, err
	}
	if err = driver.Set(d.Group.Epoch, 0, 16, d.stream); err != nil {
		return nil, err
	}
	if err = d.clock.open(&d.queue); err != nil {
		return d, fmt.Errorf("GPU %d: %w", gpu, err)
	}
	return d, nil
}

// describe says what a GPU is, for people and for plans; as if it had some matrix units.
func describe(dev cu.Device, units plan.Units4) (info kernels.Info, t plan.Target, err error) {
	name, err := dev.Name()
	if err != nil {
		return info, t, err
	}
	major, err := dev.Attribute(cu.ComputeCapabilityMajor)
	minor, err2 := dev.Attribute(cu.ComputeCapabilityMinor)
	sms, err3 := dev.Attribute(cu.MultiprocessorCount)
	shared, err4 := dev.Attribute(maxSharedOptin)
	bytes, err5 := dev.TotalMem()
	v := cu.Version()
	info = kernels.Info{Kind: "cuda", Beside: true, Name: name,
		Detail: fmt.Sprintf("compute capability %d.%d, driver for CUDA %d.%d", major, minor, v/1000, v%1000/10),
		Memory: bytes}
	t = plan.Target{Architecture: plan.ArchitectureOf(major, minor).With(units), SMs: int32(sms), Shared: int32(shared)}
	return info, t, errors.Join(err, err2, err3, err4, err5)
}

// use makes the rank's context current. After an error that ended the group it
// refuses: a kernel may still run, and waiting for it could take for ever.
func (d *device) use() error {
	if err := d.group.ended(); err != nil {
		return err
	}
	return cu.SetCurrentContext(d.ctx)
}

func (d *device) Info() kernels.Info {
	info := d.info
	info.Clock = d.clock.worst
	return info
}

// Stats returns what the device did so far.
func (d *device) Stats() Stats { return d.stats }

// Alloc reserves zeroed memory; every rank has its own, shared or not.
func (d *device) Alloc(bytes int64, _ kernels.Sharing) (kernels.Buffer, error) {
	if bytes < 0 {
		return kernels.Buffer{}, fmt.Errorf("allocate %d bytes: less than none", bytes)
	}
	if err := d.use(); err != nil {
		return kernels.Buffer{}, err
	}
	p, err := d.malloc(bytes)
	if err != nil {
		return kernels.Buffer{}, err
	}
	if err := driver.Set(p, 0, max(bytes, 256), d.stream); err != nil {
		return kernels.Buffer{}, fmt.Errorf("%w: clear memory: %w", kernels.ErrDevice, err)
	}
	return d.add(plan.Buffer{Ptr: p, Bytes: bytes}), nil
}

// Upload copies through pinned memory, in order with lists.
func (d *device) Upload(dst kernels.Buffer, src []byte) error {
	if err := d.use(); err != nil {
		return err
	}
	b, err := d.find(dst)
	if err != nil {
		return err
	}
	if int64(len(src)) > dst.Len {
		return fmt.Errorf("%w: %d bytes into %d", kernels.ErrKernel, len(src), dst.Len)
	}
	return d.copyIn(b.Ptr+uintptr(dst.Offset), src)
}

// Download waits for the copy.
func (d *device) Download(dst []byte, src kernels.Buffer) error {
	if err := d.use(); err != nil {
		return err
	}
	b, err := d.find(src)
	if err != nil {
		return err
	}
	if int64(len(dst)) > src.Len {
		return fmt.Errorf("%w: %d bytes from %d", kernels.ErrKernel, len(dst), src.Len)
	}
	for ptr := b.Ptr + uintptr(src.Offset); len(dst) > 0; {
		n := min(len(dst), len(d.stage))
		if err := errors.Join(driver.ToHost(d.stage[:n], ptr, d.stream), driver.Sync(d.stream)); err != nil {
			return fmt.Errorf("%w: copy from the GPU: %w", kernels.ErrDevice, err)
		}
		copy(dst, d.stage[:n])
		dst, ptr = dst[n:], ptr+uintptr(n)
	}
	return nil
}

// Close frees everything; the context ends with its last rank.
func (d *device) Close() error {
	if d.use() != nil {
		return nil
	}
	d.graphs.forget()
	d.group.leave(d)
	d.memory.close()
	d.stamps.close()
	d.clock.close()
	d.flights.close()
	d.pipe.close()
	d.loading.end()
	driver.FreePinned(d.stage)
	d.stage = nil
	d.stream.Destroy()
	return cu.Device(d.gpu).ReleasePrimaryCtx()
}

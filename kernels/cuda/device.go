//go:build cuda

package cuda

import (
	"errors"
	"fmt"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda/driver"
	"glmbatch/kernels/cuda/nccl"

	"gorgonia.org/cu"
)

// buffer is one allocation, or one loaded weight.
type buffer struct {
	ptr   uintptr
	bytes int64
	w     *weight // nil: plain memory
}

// device is one rank: a context, a stream and what it allocated.
type device struct {
	group      *group
	rank       int
	gpu        int
	ctx        cu.CUContext
	stream     cu.Stream
	last       last // launch that leaves all before it done
	funcs      map[string]cu.Function
	info       kernels.Info
	units4     units4 // of the GPU
	warpgroups bool   // the GPU has Hopper's products of warpgroups

	bufs        []buffer // index is Buffer.Index-1
	stage       []byte   // pinned, for copies that are waited for
	pipe        pipe     // for copies to the GPU
	loading     loading  // of weights
	flights     flights  // lists on their way
	epoch       uintptr  // counts of the rank's barriers and collectives, for kernels
	scratch     [scratches]region
	tables      map[string]uintptr // device arrays that launches refer to
	graphs      []*graph           // the last used first
	stamps      stamps
	clock       clock
	asides      asides
	dry         bool           // measure scratch instead of launching
	bundle      []segment      // of the launch that is being put together
	teams       []teamP        // of the launch that is being put together
	teamWeights kernels.Format // theirs
	beside      bool           // q_absorb and index_topk are launched together
	absorb      *absorbP       // q_absorb, if it is left to index_topk's launch
	behind      bool           // q_absorb's launch lets index_topk's start that has not to wait for it
	fresh       fresh          // what the list wrote last
	panels      panels         // of rows in the list that is being launched
	of          []int          // the calls that it, or the next launch, is for
	grouped     kernels.Buffer
	turn        int   // of the call that is being launched
	split       split // the panels in scratch memory
	stats       Stats
	nccl        *nccl.Comm // nil: not in use
	lists       int        // started, while a fault is asked for

	arriving bool       // a copy is in front: a kernel could read what it brings too early
	lanesOf  []int8     // of the calls of the graph that is being captured
	launched []launched // what the last list launched, while a profiler is on
}

// region is scratch memory that grows before a list first runs, never in a step.
type region struct {
	ptr        uintptr
	have, need int64
}

const (
	scratchLists = iota // rows grouped by expert: kept from moe_up to moe_down
	scratchWork
	scratchPanels // activations as warpgroups read them
	scratchComm
	scratchRows // panels, see panels.go
	scratchMany // those of more rows
	scratches
)

// Stats count what the device did.
type Stats struct{ Launches, Graphs, Nodes, GraphLaunches int }

const stageBytes = 4 << 20

// newDevice opens a rank; mates are the group's ranks on that GPU so far.
func newDevice(g *group, rank, gpu int, mates []*device) (d *device, err error) {
	d = &device{group: g, rank: rank, gpu: gpu, funcs: map[string]cu.Function{}, tables: map[string]uintptr{}}
	dev := cu.Device(gpu)
	if d.ctx, err = dev.RetainPrimaryCtx(); err != nil {
		return nil, fmt.Errorf("%w: open the GPU: %w", kernels.ErrDevice, driver.Of(err))
	}
	if err = d.use(); err != nil {
		return nil, err
	}
	if d.info, err = describe(dev); err != nil {
		return nil, err
	}
	d.warpgroups = warpgroups(dev)
	d.units4 = max(g.options.units4, units4Of(dev))
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
	if d.epoch, err = d.malloc(16); err != nil {
		return nil, err
	}
	if err = driver.Set(d.epoch, 0, 16, d.stream); err != nil {
		return nil, err
	}
	return d, d.clock.open(d)
}

func describe(dev cu.Device) (kernels.Info, error) {
	name, err := dev.Name()
	if err != nil {
		return kernels.Info{}, err
	}
	major, _ := dev.Attribute(cu.ComputeCapabilityMajor)
	minor, _ := dev.Attribute(cu.ComputeCapabilityMinor)
	bytes, err := dev.TotalMem()
	v := cu.Version()
	return kernels.Info{Kind: "cuda", Beside: true, Name: name, Detail: fmt.Sprintf("compute capability %d.%d, driver for CUDA %d.%d", major, minor, v/1000, v%1000/10), Memory: bytes}, err
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

func gib(bytes int64) string { return fmt.Sprintf("%.3f GiB", float64(bytes)/(1<<30)) }

func (d *device) malloc(bytes int64) (uintptr, error) {
	p, err := cu.MemAlloc(max(bytes, 256))
	if err != nil {
		if err = driver.Of(err); err != driver.OutOfMemory {
			return 0, fmt.Errorf("%w: allocate on GPU %d: %w", kernels.ErrDevice, d.gpu, err)
		}
		free, total, _ := cu.MemInfo()
		return 0, fmt.Errorf("%w: %s wanted on GPU %d, %s, which has %s of %s free", kernels.ErrMemory, gib(bytes), d.gpu, d.info.Name, gib(free), gib(total))
	}
	return uintptr(p), nil
}

// filled is a table of that name, which stays, of bytes that are all the same.
func (d *device) filled(name string, bytes int64, with byte) (uintptr, error) {
	if t, ok := d.tables[name]; ok {
		return t, nil
	}
	t, err := d.malloc(bytes)
	if err != nil {
		return 0, err
	}
	if err := driver.Set(t, with, bytes, d.stream); err != nil {
		return 0, errors.Join(fmt.Errorf("%w: fill %s: %w", kernels.ErrDevice, name, err), cu.MemFree(cu.DevicePtr(t)))
	}
	d.tables[name] = t
	return t, nil
}

func (d *device) add(b buffer) kernels.Buffer {
	d.bufs = append(d.bufs, b)
	return kernels.Buffer{Index: uint32(len(d.bufs)), Len: b.bytes}
}

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
	return d.add(buffer{ptr: p, bytes: bytes}), nil
}

// find checks that b lies within an allocation of this rank.
func (d *device) find(b kernels.Buffer) (*buffer, error) {
	if b.Index == 0 || int(b.Index) > len(d.bufs) {
		return nil, fmt.Errorf("%w: no buffer %d", kernels.ErrKernel, b.Index)
	}
	x := &d.bufs[b.Index-1]
	if b.Offset < 0 || b.Len < 0 || b.Offset > x.bytes || b.Len > x.bytes-b.Offset {
		return nil, fmt.Errorf("%w: bytes %d+%d of buffer %d, which has %d", kernels.ErrKernel, b.Offset, b.Len, b.Index, x.bytes)
	}
	return x, nil
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
	return d.copyIn(b.ptr+uintptr(dst.Offset), src)
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
	for ptr := b.ptr + uintptr(src.Offset); len(dst) > 0; {
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
	d.forgetGraphs()
	for _, b := range d.bufs {
		cu.MemFree(cu.DevicePtr(b.ptr))
	}
	d.group.leave(d)
	for _, t := range d.tables {
		cu.MemFree(cu.DevicePtr(t))
	}
	for _, s := range d.scratch {
		if s.ptr != 0 {
			cu.MemFree(cu.DevicePtr(s.ptr))
		}
	}
	d.stamps.close()
	d.clock.close()
	d.flights.close()
	d.pipe.close()
	d.loading.end()
	driver.FreePinned(d.stage)
	d.bufs, d.tables, d.stage = nil, nil, nil
	d.stream.Destroy()
	return cu.Device(d.gpu).ReleasePrimaryCtx()
}

package cpu

import (
	"errors"
	"fmt"
	"runtime"

	"glmbatch/kernels"
	"glmbatch/kernels/cpu/simd"
)

// MaxRanks is the largest number of ranks that one hub serves.
const MaxRanks = 64

// Options configure the device. The zero value is usable.
type Options struct {
	Threads int   // that execute calls, the caller's among them; 0: GOMAXPROCS
	Memory  int64 // bytes that all ranks may allocate together; 0: what the machine has
	Fault   Fault // for tests
}

// Validate reports every fault of o.
func (o Options) Validate() error {
	var errs []error
	if o.Threads < 0 || o.Threads > 1024 {
		errs = append(errs, fmt.Errorf("cpu: Threads %d is not in 0..1024", o.Threads))
	}
	if o.Memory < 0 {
		errs = append(errs, fmt.Errorf("cpu: Memory %d is negative", o.Memory))
	}
	if k := o.Fault.Kind; k != "" && k != Failing && k != Panicking {
		errs = append(errs, fmt.Errorf("cpu: fault %q: there are %s and %s", k, Failing, Panicking))
	}
	return errors.Join(errs...)
}

// Open makes the devices of a group of ranks. Closing the last of them ends
// the worker threads and frees the memory.
func Open(ranks int, o Options) ([]kernels.Device, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if ranks < 1 || ranks > MaxRanks {
		return nil, fmt.Errorf("cpu: %d ranks are not in 1..%d", ranks, MaxRanks)
	}
	if o.Threads == 0 {
		o.Threads = runtime.GOMAXPROCS(0)
	}
	if o.Memory == 0 {
		o.Memory = totalMemory()
	}
	h := newHub(ranks, o)
	ds := make([]kernels.Device, ranks)
	for r := range ds {
		ds[r] = &device{hub: h, rank: r, fault: o.Fault}
	}
	return ds, nil
}

// device is one rank of a hub.
type device struct {
	hub    *hub
	rank   int
	next   int // buffers that this rank has allocated
	lists  int // that it was given
	fault  Fault
	closed bool
}

func (d *device) Alloc(bytes int64, s kernels.Sharing) (kernels.Buffer, error) {
	if bytes < 0 {
		return kernels.Buffer{}, fmt.Errorf("cpu: allocation of %d bytes", bytes)
	}
	want := shape{bytes: bytes, sharing: s}
	return d.reserve(want, func() (storage, error) { return d.hub.memory(bytes) })
}

func (d *device) Load(w kernels.Weights, s kernels.Sharing) (kernels.Buffer, error) {
	if err := checkWeights(w); err != nil {
		return kernels.Buffer{}, err
	}
	want := shape{bytes: packedBytes(w), sharing: s, name: w.Name, format: w.Format, use: w.Use, count: w.Count,
		rows: w.Rows, cols: w.Cols}
	return d.reserve(want, func() (storage, error) {
		st, err := d.hub.memory(want.bytes)
		if err == nil {
			streamed(st.data)
			if st.weights, err = pack(st.data, w, d.hub.threads); err != nil {
				d.hub.release(st)
			}
		}
		if err != nil {
			return storage{}, fmt.Errorf("cpu: loading %s: %w", w.Name, err)
		}
		return st, nil
	})
}

// reserve makes the rank's next buffer by fill, or finds it where another rank
// has made it already.
func (d *device) reserve(want shape, fill func() (storage, error)) (kernels.Buffer, error) {
	if d.closed {
		return kernels.Buffer{}, errClosed
	}
	index := d.next
	b, err := d.hub.buffer(index, want)
	if err != nil {
		return kernels.Buffer{}, fmt.Errorf("cpu: rank %d: %w", d.rank, err)
	}
	if err := b.fill(d.rank, fill); err != nil {
		d.hub.drop(index, b)
		return kernels.Buffer{}, err
	}
	d.next++
	return kernels.Buffer{Index: uint32(index + 1), Len: want.bytes}, nil
}

func (d *device) Upload(dst kernels.Buffer, src []byte) error {
	b, err := d.bytes(dst, len(src))
	if err != nil {
		return fmt.Errorf("cpu: upload: %w", err)
	}
	// Ranks bring the same bytes to a copy that they share: one after the other.
	c := d.hub.table()[dst.Index-1].cell(d.rank)
	c.Lock()
	defer c.Unlock()
	copy(b, src)
	return nil
}

func (d *device) Download(dst []byte, src kernels.Buffer) error {
	b, err := d.bytes(src, len(dst))
	if err != nil {
		return fmt.Errorf("cpu: download: %w", err)
	}
	copy(dst, b)
	return nil
}

// bytes returns the first n bytes of b on this rank.
func (d *device) bytes(b kernels.Buffer, n int) ([]byte, error) {
	if d.closed {
		return nil, errClosed
	}
	bufs := d.hub.table()
	if b.Index == 0 || int(b.Index) > min(len(bufs), d.next) {
		return nil, fmt.Errorf("%w: no buffer %d", kernels.ErrKernel, b.Index)
	}
	data := bufs[b.Index-1].on(d.rank).data
	if b.Offset < 0 || b.Len < int64(n) || b.Offset > int64(len(data)) || int64(n) > int64(len(data))-b.Offset {
		return nil, fmt.Errorf("%w: %d bytes at %d of buffer %d, which has %d (view: %d)", kernels.ErrKernel, n,
			b.Offset, b.Index, len(data), b.Len)
	}
	return data[b.Offset : b.Offset+int64(n)], nil
}

// Start returns when the list has ended: whoever waits is one of the workers.
func (d *device) Start(calls []kernels.Call, spans []kernels.Span, f kernels.Fetch) error {
	if d.closed {
		return errClosed
	}
	if spans != nil && len(spans) != len(calls) {
		return fmt.Errorf("cpu: %d spans for %d calls", len(spans), len(calls))
	}
	if err := d.fault.start(d.lists); err != nil {
		return err
	}
	d.lists++
	if err := d.hub.meet(d.rank, calls, spans); err != nil || len(f.To) == 0 {
		return err
	}
	return d.Download(f.To, f.From)
}

func (d *device) Wait() error { return nil }

func (d *device) Info() kernels.Info {
	return kernels.Info{Kind: "cpu", Name: cpuName(), Detail: simd.Level(), Memory: d.hub.limit,
		Threads: d.hub.threads, Shared: true}
}

func (d *device) Close() error {
	if d.closed {
		return nil
	}
	d.closed = true
	return d.hub.leave()
}

package ranks

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"glmbatch/kernels"
)

// Options configure a group. The zero value is usable.
type Options struct {
	// Lock ties each rank's goroutine to an OS thread of its own for the
	// group's life, as devices with a current context per thread need. A single
	// rank runs on the caller's goroutine, tied to its thread for that long.
	Lock bool
}

// Group is n devices that run one program. Its methods are for one goroutine at
// a time.
type Group struct {
	devices []kernels.Device
	lock    bool
	work    []chan func() // one a rank; its goroutine runs them in order; none for a single rank
	wg      sync.WaitGroup
	errs    []error
	bufs    []kernels.Buffer
	flying  int // lists that were started and not waited for
	closed  bool
}

// New makes a group of devices, whose owner it becomes.
func New(devices []kernels.Device, o Options) (*Group, error) {
	if len(devices) == 0 {
		return nil, errors.New("ranks: no devices")
	}
	n := len(devices)
	g := &Group{devices: devices, lock: o.Lock, errs: make([]error, n), bufs: make([]kernels.Buffer, n)}
	if n == 1 {
		return g, nil
	}
	g.work = make([]chan func(), n)
	for r := range devices {
		g.work[r] = make(chan func())
		g.wg.Go(func() {
			if o.Lock {
				// Never unlocked: the thread ends with the goroutine, and what the
				// device keeps for the thread ends with it.
				runtime.LockOSThread()
			}
			for f := range g.work[r] {
				f()
			}
		})
	}
	return g, nil
}

// Ranks returns the number of devices.
func (g *Group) Ranks() int { return len(g.devices) }

// Info describes rank 0's device; the others are alike.
func (g *Group) Info() kernels.Info { return g.devices[0].Info() }

// Alloc reserves zeroed memory on every rank.
func (g *Group) Alloc(bytes int64, s kernels.Sharing) (kernels.Buffer, error) {
	return g.allocate(func(_ int, d kernels.Device) (kernels.Buffer, error) { return d.Alloc(bytes, s) })
}

// Load packs weights on every rank; of returns a rank's share and is called
// from the rank's goroutine. Ranks that share memory read replicated weights once.
func (g *Group) Load(s kernels.Sharing, of func(rank int) kernels.Weights) (kernels.Buffer, error) {
	return g.allocate(func(r int, d kernels.Device) (kernels.Buffer, error) { return d.Load(of(r), s) })
}

func (g *Group) allocate(f func(r int, d kernels.Device) (kernels.Buffer, error)) (kernels.Buffer, error) {
	err := g.each(func(r int, d kernels.Device) (err error) {
		g.bufs[r], err = f(r, d)
		return err
	})
	if err != nil {
		return kernels.Buffer{}, err
	}
	for r, b := range g.bufs {
		if b != g.bufs[0] {
			return kernels.Buffer{}, fmt.Errorf("rank %d: %w: allocation is %+v, rank 0 has %+v", r,
				kernels.ErrDevice, b, g.bufs[0])
		}
	}
	return g.bufs[0], nil
}

// Upload copies src to every rank.
func (g *Group) Upload(dst kernels.Buffer, src []byte) error {
	return g.each(func(_ int, d kernels.Device) error { return d.Upload(dst, src) })
}

// UploadEach copies to each rank what is its own; what there is one of, to all.
func (g *Group) UploadEach(dst kernels.Buffer, src [][]byte) error {
	return g.each(func(r int, d kernels.Device) error { return d.Upload(dst, src[min(r, len(src)-1)]) })
}

// UploadTo copies src to one rank.
func (g *Group) UploadTo(rank int, dst kernels.Buffer, src []byte) error {
	return g.on(rank, func(d kernels.Device) error { return d.Upload(dst, src) })
}

// Download copies from one rank.
func (g *Group) Download(rank int, dst []byte, src kernels.Buffer) error {
	return g.on(rank, func(d kernels.Device) error { return d.Download(dst, src) })
}

// Start starts calls on every rank, and a fetch on each of the first ranks that there is
// one for. spans is nil, or has one slice a rank.
func (g *Group) Start(calls []kernels.Call, spans [][]kernels.Span, fetches ...kernels.Fetch) error {
	if spans != nil && len(spans) != len(g.devices) {
		return fmt.Errorf("ranks: spans of %d ranks for a group of %d", len(spans), len(g.devices))
	}
	err := g.each(func(r int, d kernels.Device) error {
		var own []kernels.Span
		if spans != nil {
			own = spans[r]
		}
		var f kernels.Fetch
		if r < len(fetches) {
			f = fetches[r]
		}
		return d.Start(calls, own, f)
	})
	if err != nil {
		g.flying = 0 // nothing more will land
		return err
	}
	g.flying++
	return nil
}

// Wait returns when the oldest list that was started and not waited for has
// ended on every rank.
func (g *Group) Wait() error {
	err := g.each(func(_ int, d kernels.Device) error { return d.Wait() })
	if g.flying--; err != nil || g.flying < 0 {
		g.flying = 0
	}
	return err
}

// asider is a device that says what it did for its last list besides calls.
type asider interface{ Asides() []kernels.Aside }

// Asides are what each rank did for the list that was waited for last, besides its
// calls, if that had spans; nil where devices do not tell. They are valid until
// the next Wait.
func (g *Group) Asides() [][]kernels.Aside {
	var all [][]kernels.Aside
	for _, d := range g.devices {
		if a, ok := d.(asider); ok {
			all = append(all, a.Asides())
		}
	}
	return all
}

// Landed is when the list that was waited for last was seen to have ended on all
// ranks, which is before its spans were worked out; now where devices do not tell.
func (g *Group) Landed() int64 {
	var last int64
	for _, d := range g.devices {
		l, ok := d.(interface{ Landed() int64 })
		if !ok {
			return kernels.Now()
		}
		last = max(last, l.Landed())
	}
	return last
}

// Run starts calls on every rank and waits for their end.
func (g *Group) Run(calls []kernels.Call, spans [][]kernels.Span) error {
	if err := g.Start(calls, spans); err != nil {
		return err
	}
	return g.Wait()
}

// Close closes every device and ends the goroutines. Lists on their way land
// before, as ranks reach into each other's memory.
func (g *Group) Close() error {
	if g.closed {
		return nil
	}
	for g.flying > 0 {
		_ = g.Wait() // after an error there is none left
	}
	err := g.each(func(_ int, d kernels.Device) error { return d.Close() })
	g.closed = true
	for _, c := range g.work {
		close(c)
	}
	g.wg.Wait()
	return err
}

// each does f for every rank at once and returns the first rank's error, before
// those of ranks that only ended because of it.
func (g *Group) each(f func(r int, d kernels.Device) error) error {
	if g.closed {
		return errClosed
	}
	if len(g.devices) == 1 {
		return g.alone(func(d kernels.Device) error { return f(0, d) })
	}
	var wg sync.WaitGroup
	wg.Add(len(g.devices))
	for r, d := range g.devices {
		g.work[r] <- func() {
			defer wg.Done()
			g.errs[r] = f(r, d)
		}
	}
	wg.Wait()
	r := slices.IndexFunc(g.errs, func(err error) bool { return err != nil && !errors.Is(err, kernels.ErrPeer) })
	if r < 0 {
		r = slices.IndexFunc(g.errs, func(err error) bool { return err != nil })
	}
	if r < 0 {
		return nil
	}
	return fmt.Errorf("rank %d: %w", r, g.errs[r])
}

var errClosed = errors.New("ranks: the group is closed")

// on does f for one rank, on the rank's goroutine.
func (g *Group) on(rank int, f func(d kernels.Device) error) error {
	if g.closed {
		return errClosed
	}
	if rank < 0 || rank >= len(g.devices) {
		return fmt.Errorf("ranks: no rank %d in a group of %d", rank, len(g.devices))
	}
	if len(g.devices) == 1 {
		return g.alone(f)
	}
	done := make(chan error, 1)
	g.work[rank] <- func() { done <- f(g.devices[rank]) }
	if err := <-done; err != nil {
		return fmt.Errorf("rank %d: %w", rank, err)
	}
	return nil
}

// alone does f for a single rank: handing it to another thread would take longer
// than most of what there is to do.
func (g *Group) alone(f func(d kernels.Device) error) error {
	if g.lock {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
	}
	if err := f(g.devices[0]); err != nil {
		return fmt.Errorf("rank 0: %w", err)
	}
	return nil
}

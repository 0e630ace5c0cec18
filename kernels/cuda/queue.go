//go:build cuda

package cuda

import (
	"errors"
	"fmt"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda/driver"
	"glmbatch/kernels/cuda/nccl"
	"glmbatch/kernels/cuda/plan"

	"gorgonia.org/cu"
)

// queue emits launches on a rank's stream.
type queue struct {
	stream   cu.Stream
	funcs    map[string]cu.Function
	nccl     *nccl.Comm // nil: not in use
	arriving bool       // a copy is in front: a kernel could read what it brings too early
	stats    Stats
}

// Stats count what the device did.
type Stats struct{ Launches, Graphs, Nodes, GraphLaunches int }

// all launches a plan.
func (q *queue) all(p *plan.Plan) error {
	for i := range p.Launches {
		if err := q.launch(&p.Launches[i]); err != nil {
			return err
		}
	}
	return nil
}

// launch launches a kernel as soon as the one before it lets it start, or has NCCL move
// messages.
func (q *queue) launch(l *plan.Launch) error {
	if l.Messages != nil {
		return q.exchange(l.Messages)
	}
	d, err := q.kernel(l)
	if err != nil {
		return err
	}
	d.Early, q.arriving = !q.arriving && !l.Late, false
	q.stats.Launches++
	if err := d.Do(q.stream); err != nil {
		return fmt.Errorf("%w: launch %s: %w", kernels.ErrDevice, l.Entry, err)
	}
	return nil
}

// kernel is a launch as the driver takes it.
func (q *queue) kernel(l *plan.Launch) (driver.Launch, error) {
	f, ok := q.funcs[l.Entry]
	if !ok {
		return driver.Launch{}, fmt.Errorf("%w: no kernel %s in the images", kernels.ErrKernel, l.Entry)
	}
	return driver.Launch{Func: f, Grid: l.Grid, Threads: l.Threads, Cluster: l.Cluster, Shared: l.Shared,
		Params: l.Pointer()}, nil
}

// exchange has NCCL move messages.
func (q *queue) exchange(ms []plan.Message) error {
	err := q.nccl.Library().Group(func() error {
		var errs []error
		for _, m := range ms {
			switch m.Kind {
			case plan.Send:
				errs = append(errs, q.nccl.Send(m.From, m.Values, m.Peer, q.stream))
			case plan.Receive:
				errs = append(errs, q.nccl.Recv(m.To, m.Values, m.Peer, q.stream))
			case plan.Gather:
				errs = append(errs, q.nccl.Gather(m.From, m.To, m.Values, q.stream))
			}
		}
		return errors.Join(errs...)
	})
	if err != nil {
		return fmt.Errorf("%w: %w", kernels.ErrDevice, err)
	}
	return nil
}

// copy launches a copy, or takes stamps to the host, or both.
func (q *queue) copy(c plan.Copy) error {
	l := c.Launch()
	if l.Grid[0] == 0 {
		return nil
	}
	return q.launch(&l)
}

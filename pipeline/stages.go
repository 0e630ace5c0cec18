package pipeline

import (
	"context"
	"io"
	"sync"

	"glmbatch/datasets"
	"glmbatch/kernels"
)

// work is a batch of records on its way through the tokenizing workers.
type work struct {
	records []datasets.Record
	rows    []*row
	err     error // of the guides: rows are missing
	ready   chan struct{}
}

// reading reads and tokenizes rows from..to. Batches come out of the returned
// channel in input order, each complete; it is closed at the end. The error, if
// any, is there when it is closed; no rows come behind those that it is about. Rows that
// are done are left out. Room is for few batches, so that memory does not grow with the
// input.
func reading(ctx context.Context, in *datasets.Input, from, to int64, p *preparer, done func(*row) bool,
	clock *hostClock) (<-chan []*row, func() error) {
	n := p.o.Workers
	ctx, stop := context.WithCancel(ctx)
	todo, order, out := make(chan *work, n), make(chan *work, n), make(chan []*row)
	var failed, broke error
	go func() { // reads
		defer close(order)
		defer close(todo)
		r := in.Reader(from, to)
		defer r.Close()
		for ctx.Err() == nil {
			start := kernels.Now()
			records, err := r.Read()
			if err != nil {
				if err != io.EOF {
					failed = err
				}
				return
			}
			clock.add(phaseRead, start)
			w := &work{records: records, ready: make(chan struct{})}
			select {
			case order <- w:
			case <-ctx.Done():
				return
			}
			todo <- w // never blocks for long: workers take what is ordered
		}
	}()
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			for w := range todo {
				start := kernels.Now()
				w.rows = make([]*row, 0, len(w.records))
				for _, rec := range w.records {
					r := p.row(ctx, rec)
					if done(r) {
						continue
					}
					if w.err = p.judge(ctx, r); w.err != nil {
						break
					}
					w.rows = append(w.rows, r)
				}
				clock.add(phaseTokenize, start)
				close(w.ready)
			}
		})
	}
	go func() { // puts them in order
		defer close(out)
		defer stop()
		for w := range order {
			<-w.ready
			if ctx.Err() != nil { // its rows may have been stopped half-way
				continue
			}
			if w.err != nil {
				broke = w.err
				stop()
				continue
			}
			select {
			case out <- w.rows:
			case <-ctx.Done():
				for range order { // the reader stops too
				}
			}
		}
		wg.Wait()
	}()
	return out, func() error {
		if broke != nil {
			return broke
		}
		return failed
	}
}

package guide

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"glmbatch/pipeline/tokenizer"
)

// Options configure [Guides]. The zero value is usable.
type Options struct {
	Ends   []int32       // the end tokens; at least one
	Tokens int           // of the model's vocabulary, where it has fewer than the tokenizer; 0: it has not
	Boxes  int           // that work side by side; 0: one a processor, 16 at most
	Cache  string        // folder where the compiled module is kept; "": it is compiled for each process
	Limit  time.Duration // the most that one call may take; 0: 20 s
}

// Guides reads specs and makes matchers for one tokenizer. It is safe for concurrent use.
type Guides struct {
	o       Options
	vocab   *vocabulary
	machine *machine
	fresh   []byte // memory of a box that knows the tokens
	think   int32  // the token </think>; -1: there is none

	mu       sync.Mutex
	benches  []*bench
	verdicts map[Spec]*verdict
	closed   bool
	stop     chan struct{}
	workers  sync.WaitGroup
}

// verdict is whether a spec can be followed.
type verdict struct {
	once sync.Once
	err  error
}

// mostVerdicts bounds the specs that are remembered.
const mostVerdicts = 1 << 14

// mostBoxes bounds the memory that guides take by themselves: a box has a hundred
// megabytes for a vocabulary of 150,000 tokens.
const mostBoxes = 16

// New returns the guides for a tokenizer.
func New(ctx context.Context, t *tokenizer.Tokenizer, o Options) (*Guides, error) {
	if o.Boxes <= 0 {
		o.Boxes = min(runtime.GOMAXPROCS(0), mostBoxes)
	}
	if o.Limit <= 0 {
		o.Limit = 20 * time.Second
	}
	v, err := newVocabulary(t, o.Tokens, o.Ends)
	if err != nil {
		return nil, err
	}
	m, err := newMachine(ctx, o.Cache)
	if err != nil {
		return nil, err
	}
	b, err := m.open(nil)
	if err == nil {
		err = b.vocabulary(v)
	}
	if err != nil {
		m.close()
		return nil, fmt.Errorf("guides of %d tokens: %w", v.tokens, err)
	}
	g := &Guides{o: o, vocab: v, machine: m, fresh: b.memory(), think: -1, verdicts: map[Spec]*verdict{}, stop: make(chan struct{})}
	v.bytes = nil
	for id, text := range t.AddedIDs() {
		if text == thinkEnd {
			g.think = id
		}
	}
	g.add(b)
	g.workers.Go(g.watch)
	return g, nil
}

// add puts up another bench. g.mu is held, or nobody else knows of g.
func (g *Guides) add(b *box) *bench {
	w := &bench{g: g, box: b, jobs: make(chan func(), 256), grammars: map[Spec]*grammar{}}
	g.benches = append(g.benches, w)
	g.workers.Go(w.work)
	return w
}

// watch breaks off calls that take too long.
func (g *Guides) watch() {
	tick := time.NewTicker(max(g.o.Limit/16, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-g.stop:
			return
		case <-tick.C:
		}
		g.mu.Lock()
		for _, w := range g.benches {
			if b := w.now(); b != nil {
				b.late(g.o.Limit)
			}
		}
		g.mu.Unlock()
	}
}

// errClosed: there are no guides any more.
var errClosed = errors.New("the guides are closed")

// least returns the bench with the fewest matchers, a new one if all have some.
func (g *Guides) least() (*bench, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, errClosed
	}
	best := g.benches[0]
	for _, w := range g.benches[1:] {
		if w.matchers < best.matchers {
			best = w
		}
	}
	if best.matchers >= 2 && len(g.benches) < g.o.Boxes {
		best = g.add(nil)
	}
	best.matchers++
	return best, nil
}

func (g *Guides) release(w *bench) {
	g.mu.Lock()
	w.matchers--
	g.mu.Unlock()
}

// Check reports why a spec cannot be followed; nil: it can.
func (g *Guides) Check(s Spec) error {
	if err := s.bound(); err != nil {
		return err
	}
	g.mu.Lock()
	if len(g.verdicts) >= mostVerdicts {
		clear(g.verdicts)
	}
	v := g.verdicts[s]
	if v == nil {
		v = &verdict{}
		g.verdicts[s] = v
	}
	g.mu.Unlock()
	v.once.Do(func() {
		w, err := g.least()
		if v.err = err; err != nil {
			return
		}
		defer g.release(w)
		done := make(chan error, 1)
		w.jobs <- func() {
			done <- w.twice(func() error {
				_, err := w.grammar(s)
				return err
			}, s)
		}
		if v.err = <-done; v.err != nil && s.Kind == Schema && !errors.Is(v.err, errBroken) && !errors.Is(v.err, errLate) {
			v.err = said(v.err)
		}
	})
	return v.err
}

// Close ends all. No matcher may be used after it.
func (g *Guides) Close() {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return
	}
	g.closed = true
	close(g.stop)
	for _, w := range g.benches {
		close(w.jobs)
	}
	g.mu.Unlock()
	g.workers.Wait()
	g.machine.close()
}

package guide

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"
)

// Options configure [Guides]. The zero value is usable.
type Options struct {
	Ends   []int32 // the end tokens; at least one
	Tokens int     // of the model's vocabulary, where it has fewer than the tokenizer; 0: it has not
	Boxes  int     // that work side by side; 0: one a processor, 16 at most
	Cache  string  // folder where the compiled module is kept; "": it is compiled for each process
	// Limit is the most that one call of the module may take in reading a spec, by the clock;
	// 0: 20 s. A spec takes a few calls, and those of one that fails in time are made twice.
	Limit time.Duration
}

// Guides reads specs and makes matchers for one vocabulary. It is safe for concurrent use.
type Guides struct {
	o       Options
	vocab   *vocabulary
	machine *machine
	fresh   *image // of a box that knows the tokens
	think   int32  // the token </think>; -1: there is none
	tokens  Tokens

	spelling sync.Once
	spell    map[string][]int32 // see words

	mu       sync.Mutex
	benches  []*bench
	judge    *bench // where specs are read first: what takes too long there is read nowhere else
	verdicts map[specKey]*verdict
	closed   bool
	stop     chan struct{}
	workers  sync.WaitGroup
}

// verdict is whether a spec can be followed.
type verdict struct {
	once sync.Once
	err  error
}

// specKey is a spec in few bytes: texts have a megabyte, and hostile ones have nothing else
// to do than to be many.
type specKey struct {
	kind Kind
	text [sha256.Size]byte
}

func (s Spec) key() specKey { return specKey{s.Kind, sha256.Sum256([]byte(s.Text))} }

// What is remembered of specs is bounded by their number, and the text of each.
const (
	mostVerdicts = 1 << 14
	mostSaid     = 2048 // bytes of an error: the module may quote the spec
)

// mostBoxes bounds the memory that guides take by themselves: a box has a hundred
// megabytes for a vocabulary of 150,000 tokens.
const mostBoxes = 16

// New returns the guides for a vocabulary.
func New(ctx context.Context, t Tokens, o Options) (*Guides, error) {
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
	b, err := m.fast.open(nil)
	if err == nil {
		if err = b.vocabulary(v); err != nil {
			b.close()
		}
	}
	if err != nil {
		m.close()
		return nil, fmt.Errorf("guides of %d tokens: %w", v.tokens, err)
	}
	g := &Guides{o: o, vocab: v, tokens: t, machine: m, fresh: newImage(b.memory()), think: -1,
		verdicts: map[specKey]*verdict{}, stop: make(chan struct{})}
	b.close()
	v.bytes = nil
	for id, text := range t.AddedIDs() {
		if text == thinkEnd {
			g.think = id
		}
	}
	g.benches = append(g.benches, g.bench(&m.fast))
	g.judge = g.bench(&m.strict)
	g.workers.Go(g.watch)
	return g, nil
}

// bench puts up another bench.
func (g *Guides) bench(code *compiled) *bench {
	w := &bench{g: g, code: code, jobs: make(chan func(), 256), grammars: map[Spec]*grammar{}}
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
		if b := g.judge.now(); b != nil {
			b.late(g.o.Limit)
		}
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
		best = g.bench(&g.machine.fast)
		g.benches = append(g.benches, best)
	}
	best.matchers++
	return best, nil
}

func (g *Guides) release(w *bench) {
	g.mu.Lock()
	w.matchers--
	g.mu.Unlock()
}

// Check reports why a spec cannot be followed; nil: it can. The error is the spec's unless
// it is [ErrMachine], or the guides are closed.
func (g *Guides) Check(s Spec) error {
	if err := s.bound(); err != nil {
		return err
	}
	key := s.key()
	g.mu.Lock()
	v := g.verdicts[key]
	if v == nil {
		if len(g.verdicts) >= mostVerdicts {
			clear(g.verdicts)
		}
		v = &verdict{}
		g.verdicts[key] = v
	}
	g.mu.Unlock()
	v.once.Do(func() { v.err = verdictOn(s, g.read(s)) })
	if errors.Is(v.err, ErrMachine) { // the next time it may go well
		g.mu.Lock()
		if g.verdicts[key] == v {
			delete(g.verdicts, key)
		}
		g.mu.Unlock()
	}
	return v.err
}

// verdictOn is an error of reading a spec as it is remembered.
func verdictOn(s Spec, err error) error {
	for _, kind := range []error{nil, errBroken, errLate, errClosed, ErrMachine} {
		if errors.Is(err, kind) {
			return err
		}
	}
	if s.Kind == Schema {
		err = said(err)
	}
	if text := err.Error(); len(text) > mostSaid {
		return errors.New(strings.ToValidUTF8(strings.Clone(text[:mostSaid]), "") + "…")
	}
	return err
}

// read has the judge read a spec.
func (g *Guides) read(s Spec) error {
	w, done := g.judge, make(chan error, 1)
	w.do(func() {
		done <- w.twice(func() error {
			_, err := w.grammar(s)
			return err
		}, s)
	})
	return w.result(done)
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
	g.mu.Unlock()
	g.workers.Wait()
	g.fresh.close()
	g.machine.close()
}

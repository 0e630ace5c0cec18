package guide

import (
	"errors"
	"fmt"
	"sync"
)

// bench is where one box works, on one job after the other.
type bench struct {
	g        *Guides
	code     *compiled
	jobs     chan func()
	matchers int // at home here; g.mu guards it

	mu  sync.Mutex // guards box, for those who look from outside
	box *box       // nil: it is to be made

	// Of the box at hand.
	number   int64 // of boxes before it
	grammars map[Spec]*grammar
	uses     int64
}

// grammar is a spec that a box has read.
type grammar struct {
	handle int32
	used   int64
}

// mostGrammars is how many a box keeps.
const mostGrammars = 128

func (w *bench) work() {
	for {
		select {
		case f := <-w.jobs:
			f()
			continue
		case <-w.g.stop:
		}
		break
	}
	if w.box != nil {
		w.box.close()
	}
}

// do has the bench do a job, and reports whether it will: not when the guides are closed.
func (w *bench) do(f func()) bool {
	select {
	case w.jobs <- f:
		return true
	case <-w.g.stop:
		return false
	}
}

// result waits for what a job gives.
func (w *bench) result(from <-chan error) error {
	select {
	case err := <-from:
		return err
	case <-w.g.stop:
		return errClosed
	}
}

// now is the box as others see it.
func (w *bench) now() *box {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.box
}

func (w *bench) set(b *box) {
	w.mu.Lock()
	w.box = b
	w.mu.Unlock()
}

// open sees to it that there is a box.
func (w *bench) open() error {
	if w.box != nil {
		return nil
	}
	b, err := w.code.open(w.g.fresh)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMachine, err)
	}
	w.set(b)
	return nil
}

// drop ends the box, and with it all that it knew.
func (w *bench) drop() {
	w.box.close()
	w.set(nil)
	w.number++
	clear(w.grammars)
}

// grammar returns the number of a spec in the box.
func (w *bench) grammar(s Spec) (int32, error) {
	if err := w.open(); err != nil {
		return 0, err
	}
	w.uses++
	if k := w.grammars[s]; k != nil {
		k.used = w.uses
		return k.handle, nil
	}
	if len(w.grammars) >= mostGrammars {
		var oldest Spec
		for of, k := range w.grammars {
			if k.used <= w.uses && (oldest == Spec{} || k.used < w.grammars[oldest].used) {
				oldest = of
			}
		}
		if err := w.forget(oldest); err != nil {
			return 0, err
		}
	}
	h, err := w.box.grammar(s)
	if err != nil {
		return 0, err
	}
	w.grammars[s] = &grammar{h, w.uses}
	return h, nil
}

// forget lets go of a grammar; matchers of it go on.
func (w *bench) forget(s Spec) error {
	k := w.grammars[s]
	if k == nil {
		return nil
	}
	delete(w.grammars, s)
	_, err := w.box.call("drop_grammar", uint64(k.handle))
	return err
}

// twice does f, and again with a grammar that nobody used where it fails: what rows before
// left behind, memory or states of a lexer, is no reason for a row's end. A box that broke
// is made anew for it. What takes too long is not tried again.
func (w *bench) twice(f func() error, s Spec) error {
	err := f()
	if err == nil {
		return nil
	}
	if w.clean(err, s); errors.Is(err, errLate) {
		return err
	}
	if err = f(); err != nil {
		w.clean(err, s)
	}
	return err
}

// clean is what follows an error.
func (w *bench) clean(err error, s Spec) {
	if w.box == nil {
		return
	}
	if errors.Is(err, errBroken) || errors.Is(err, errLate) || w.forget(s) != nil {
		w.drop()
	}
}

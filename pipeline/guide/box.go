package guide

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// ErrMachine: there was no box to read a spec in, or to follow it. The spec may be right.
var ErrMachine = errors.New("the guides' machine does not start")

// A box of these is of no more use.
var (
	// errBroken: the module ended in the middle of a call.
	errBroken = errors.New("the grammar is too large or too ambiguous")
	// errLate: a call was broken off.
	errLate = errors.New("the grammar takes too long")
)

// box is one instance of the module. It is for one goroutine, but for late.
type box struct {
	module api.Module
	calls  map[string]api.Function
	space  *space // its memory; nil: Go's
	closed bool   // by its own goroutine
	stack  [4]uint64
	began  atomic.Int64 // when the call at hand began, by sinceStart; or idle or ended
}

// What a box's began is where no call is at hand.
const (
	idle  = 0
	ended = -1 // a call was broken off: there is none after it
)

var start = time.Now()

// sinceStart is a clock in ns that never goes back, and is above 0.
func sinceStart() int64 { return int64(time.Since(start)) + 1 }

// begin marks that a call begins, and reports whether it may.
func (b *box) begin() (at int64, ok bool) {
	at = sinceStart()
	return at, b.began.CompareAndSwap(idle, at)
}

// end marks that the call that began then has ended, and reports whether it was not
// broken off.
func (b *box) end(at int64) bool { return b.began.CompareAndSwap(at, idle) }

// overdue ends a call that has taken longer than limit, and reports whether there was one:
// that very call sees it, as no other began then.
func (b *box) overdue(limit time.Duration) bool {
	at := b.began.Load()
	return at > idle && sinceStart()-at > int64(limit) && b.began.CompareAndSwap(at, ended)
}

// The module's functions.
var functions = []string{"reserve", "message", "message_len", "vocabulary", "grammar", "drop_grammar", "matcher",
	"drop_matcher", "accept", "follow", "rollback", "mask", "complete"}

// open makes a box whose memory is an image's; nil: as the module begins.
func (c *compiled) open(i *image) (*box, error) {
	ctx, o := context.Background(), wazero.NewModuleConfig().WithName("").WithStartFunctions()
	b := &box{calls: map[string]api.Function{}}
	if b.space = reserve(); b.space != nil {
		own := func(_, _ uint64) experimental.LinearMemory { return b.space }
		ctx = experimental.WithMemoryAllocator(ctx, experimental.MemoryAllocatorFunc(own))
	}
	var err error
	if b.module, err = c.runtime.InstantiateModule(ctx, c.module, o); err == nil {
		err = b.fill(i)
	}
	if err != nil {
		b.close()
		return nil, fmt.Errorf("the guides' module: %w", err)
	}
	return b, nil
}

// fill looks up the functions, and gives the box an image.
func (b *box) fill(i *image) error {
	for _, name := range functions {
		if b.calls[name] = b.module.ExportedFunction(name); b.calls[name] == nil {
			return fmt.Errorf("it has no function %s", name)
		}
	}
	if i == nil {
		return nil
	}
	mem := b.module.Memory()
	if more := i.size - int64(mem.Size()); more > 0 {
		if _, ok := mem.Grow(uint32(more >> 16)); !ok {
			return fmt.Errorf("no memory of %d bytes", i.size)
		}
	}
	if b.space != nil && b.space.show(i) {
		return nil
	}
	return i.copy(mem)
}

// memory is what the box has; it is the box's own.
func (b *box) memory() []byte {
	all, _ := b.module.Memory().Read(0, b.module.Memory().Size())
	return all
}

// close ends the box. It is for the goroutine whose calls are made here.
func (b *box) close() {
	if b.closed {
		return
	}
	b.closed = true
	if b.module != nil {
		b.module.Close(context.Background())
	}
	if b.space != nil {
		b.space.release()
	}
}

// late breaks off a call that has taken longer than limit, if the box is of the strict
// code. It is for any goroutine.
func (b *box) late(limit time.Duration) {
	if b.overdue(limit) {
		b.module.Close(context.Background())
	}
}

// call calls a function. The error is errBroken or errLate.
func (b *box) call(name string, args ...uint64) (int32, error) {
	if b.closed {
		return 0, errBroken
	}
	n := copy(b.stack[:], args)
	at, ok := b.begin()
	if !ok {
		return 0, errLate
	}
	err := b.calls[name].CallWithStack(context.Background(), b.stack[:max(n, 1)])
	switch {
	case !b.end(at):
		return 0, errLate
	case err != nil:
		return 0, errBroken
	}
	return int32(uint32(b.stack[0])), nil
}

// do calls a function whose result is negative where it fails.
func (b *box) do(name string, args ...uint64) (int32, error) {
	v, err := b.call(name, args...)
	if err != nil || v >= 0 {
		return v, err
	}
	at, err := b.call("message")
	if err != nil {
		return 0, err
	}
	n, err := b.call("message_len")
	if err != nil {
		return 0, err
	}
	text, ok := b.module.Memory().Read(uint32(at), uint32(n))
	if !ok {
		return 0, errBroken
	}
	said, _, _ := strings.Cut(string(text), "\n<non-verbose/>")
	if strings.Contains(said, "NoExtensionBias") {
		said = "no text of the grammar goes on from here"
	}
	return 0, errors.New(said)
}

// give copies bytes to the module, for a call that takes them.
func (b *box) give(data []byte) (at uint64, err error) {
	to, err := b.call("reserve", uint64(len(data)))
	if err != nil {
		return 0, err
	}
	if !b.module.Memory().Write(uint32(to), data) {
		return 0, errBroken
	}
	return uint64(uint32(to)), nil
}

// vocabulary tells the module the tokens.
func (b *box) vocabulary(v *vocabulary) error {
	at, err := b.give(v.bytes)
	if err == nil {
		_, err = b.do("vocabulary", at, uint64(len(v.bytes)), uint64(v.tokens), uint64(len(v.ends)))
	}
	return err
}

func (b *box) grammar(s Spec) (int32, error) {
	at, err := b.give([]byte(s.Text))
	if err != nil {
		return 0, err
	}
	return b.do("grammar", uint64(s.Kind), at, uint64(len(s.Text)))
}

// follow is how many of some tokens could come next, one after the other.
func (b *box) follow(matcher int32, tokens []int32) (int, error) {
	var data []byte
	for _, t := range tokens {
		data = binary.LittleEndian.AppendUint32(data, uint32(t))
	}
	at, err := b.give(data)
	if err != nil {
		return 0, err
	}
	n, err := b.do("follow", uint64(matcher), at, uint64(len(data)))
	return min(int(n), len(tokens)), err
}

// mask fills in the tokens that may come next, of so many.
func (b *box) mask(matcher int32, into []uint64, tokens int) error {
	// The address may be above 2 GiB only in memory that no box has.
	at, err := b.do("mask", uint64(matcher))
	if err != nil {
		return err
	}
	words := (tokens + 31) / 32
	from, ok := b.module.Memory().Read(uint32(at), uint32(4*words))
	if !ok {
		return errBroken
	}
	clear(into)
	for i := range words / 2 {
		into[i] = binary.LittleEndian.Uint64(from[8*i:])
	}
	if words%2 == 1 {
		into[words/2] = uint64(binary.LittleEndian.Uint32(from[4*words-4:]))
	}
	return nil
}

package jinja

import "context"

// The budget of one render. A long conversation takes a thousandth of it.
const (
	maxSource     = 1 << 20   // bytes of a template
	maxNesting    = 200       // blocks or parentheses in each other
	maxChain      = 500       // operators, attributes or filters after one another
	maxSteps      = 5_000_000 // statements, loop turns, calls, and items or 64 bytes looked at
	maxMade       = 128 << 20 // bytes of text and items made, and made again, in all
	madePerInput  = 64        // more of them for each byte of input
	maxCalls      = 100       // macros or recursive loops in each other
	maxValueDepth = 200       // lists and mappings in each other, to print or compare
	maxIntBits    = 1 << 14   // of an integer
	maxRange      = 100_000   // items of a range, the sandbox's own limit
	checkEvery    = 1 << 10   // steps between looks at the context
)

// budget is what is left of a render's.
type budget struct {
	ctx   context.Context
	steps int
	made  int
	calls int
}

func newBudget(ctx context.Context, input int) budget {
	return budget{ctx: ctx, steps: maxSteps, made: maxMade + madePerInput*min(input, 1<<30)}
}

// step counts n steps.
func (b *budget) step(n int) {
	before := b.steps
	b.steps -= n
	if b.steps < 0 {
		fail("the template takes more than %d steps", maxSteps)
	}
	if before/checkEvery != b.steps/checkEvery {
		if err := b.ctx.Err(); err != nil {
			panic(&Error{Text: "stopped", Cause: err})
		}
	}
}

// look counts the steps of an operation that reads n bytes.
func (b *budget) look(n int) { b.step(1 + n/64) }

// make counts n bytes that are about to be made, before they are.
func (b *budget) make(n int) {
	if n < 0 || n > b.made {
		fail("the template makes more than %d MiB of values", maxMade>>20)
	}
	b.made -= n
	b.step(n / 256)
}

// items counts a list of n items that is about to be made.
func (b *budget) items(n int) {
	if n > maxMade {
		fail("a list of %d items", n)
	}
	b.make(16*n + 48)
}

// enter counts a call that goes into another.
func (b *budget) enter() {
	if b.calls++; b.calls > maxCalls {
		fail("calls nested more than %d deep", maxCalls)
	}
}

func (b *budget) leave() { b.calls-- }

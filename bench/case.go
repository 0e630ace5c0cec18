package bench

import (
	"errors"
	"fmt"
	"slices"

	"glmbatch/engine/glm5"
	"glmbatch/kernels"
	"glmbatch/replay"
	"glmbatch/units"
)

// CastPool is a change of decode steps: the fault of engines that read FP8 caches through
// a copy.
const CastPool = "kv=" + replay.CastPool

// Case is one row of the table.
type Case struct {
	prefill bool
	cast    bool // the whole pool is copied in each layer
	batch   int  // sequences
	context int  // positions of each; of a prefill, the prompt's tokens
	drafts  int  // of each sequence, that the step verifies
	layer   bool // the prediction layer makes as many for the next one
}

func (c Case) kind() string {
	if c.prefill {
		return kernels.Prefill
	}
	return kernels.Decode
}

func (c Case) String() string {
	if c.prefill {
		return fmt.Sprintf("prefill of %s tokens", units.Digits(int64(c.context)))
	}
	s := fmt.Sprintf("batch %s at context %s", units.Digits(int64(c.batch)), units.Digits(int64(c.context)))
	if c.cast {
		s += ", " + CastPool
	}
	if w := c.whatIf(); w != "" && !c.cast {
		s += ", " + w
	}
	return s
}

func (c Case) whatIf() string {
	switch {
	case c.cast:
		return CastPool
	case c.layer:
		return fmt.Sprintf("drafts=%d, layer", c.drafts)
	case c.drafts > 0:
		return fmt.Sprintf("drafts=%d", c.drafts)
	}
	return ""
}

// span is how many positions of a sequence have a place in the caches.
func (c Case) span() int {
	if c.layer {
		return c.context + c.drafts
	}
	return c.context
}

// slots are what the case takes in the caches, whole pages.
func (c Case) slots() int64 {
	return int64(c.batch) * int64((c.span()+kernels.PageTokens-1)/kernels.PageTokens*kernels.PageTokens)
}

// Cases lists what is measured, in the order of the table.
func (f *Options) Cases(c *glm5.Config) ([]Case, error) {
	var list []Case
	contexts := f.Contexts
	if len(contexts) == 0 {
		contexts = []int{min(8192, c.MaxPositions)}
	}
	for _, n := range append(slices.Clone(contexts), max(1, f.Prefill)) {
		if n < 1 || n+f.Drafts > c.MaxPositions {
			return nil, input(fmt.Errorf("a context of %d: the model has 1 to %d positions", n, c.MaxPositions))
		}
	}
	for _, n := range contexts {
		for _, b := range f.Batches {
			if b > 0 {
				list = append(list, Case{batch: b, context: n})
				if f.CastPool {
					list = append(list, Case{batch: b, context: n, cast: true})
				}
				if f.Drafts > 0 {
					list = append(list, Case{batch: b, context: n, drafts: f.Drafts},
						Case{batch: b, context: n, drafts: f.Drafts, layer: true})
				}
			}
		}
	}
	if f.Prefill > 0 {
		list = append(list, Case{prefill: true, batch: 1, context: f.Prefill})
	}
	if len(list) == 0 {
		return nil, input(errors.New("nothing to measure: give --batch or --prefill"))
	}
	return list, nil
}

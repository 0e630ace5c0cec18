package replay

import (
	"fmt"
	"slices"

	"glmbatch/engine/glm5"
	"glmbatch/kernels"
)

// pin returns the list with the capture's routing and selections in place of
// those that the step computes: calls that read them read buffers of their own.
func (s *restored) pin(calls []kernels.Call) ([]kernels.Call, error) {
	source := map[uint32]string{}
	for _, name := range []string{glm5.RegionSel, glm5.RegionExperts, glm5.RegionWeights} {
		if b := s.m.Region(name, -1); b.Index != 0 {
			source[b.Index] = name
		}
	}
	own := map[place]kernels.Buffer{} // what each layer chose, as large as the region
	turns := turnsOf(s.calls)
	for i := range s.c.Selections {
		o := &s.c.Selections[i]
		if o.Call >= len(s.calls) {
			return nil, fmt.Errorf("%s is no choice of this program", o.what(calls))
		}
		arg := kernelArg(&s.calls[o.Call], o.Arg)
		if arg == nil || source[arg.Index] == "" {
			return nil, fmt.Errorf("%s is no choice of this program", o.what(calls))
		}
		at := place{o.Layer, source[arg.Index], turns[o.Call]}
		b, ok := own[at]
		if !ok {
			var err error
			if b, err = s.m.Group().Alloc(s.m.Region(at.name, -1).Len, kernels.Replicated); err != nil {
				return nil, fmt.Errorf("pinning what layers chose: %w", err)
			}
			own[at] = b
		}
		if arg.Offset+int64(len(o.Data)) > b.Len {
			return nil, fmt.Errorf("%s has %d bytes", o.what(calls), len(o.Data))
		}
		if d := &s.calls[o.Call].Dims; !within(o, d) {
			return nil, fmt.Errorf("%s: a choice that is not there, or twice: capture the step again", o.what(calls))
		}
		if err := s.m.Group().Upload(b.Slice(arg.Offset, int64(len(o.Data))), o.Data); err != nil {
			return nil, err
		}
	}
	out, at := cloneCalls(calls), turnsOf(calls)
	for i := range out {
		c := &out[i]
		for j, a := range kernels.Lookup(c.Kernel).Args {
			if a.Role != kernels.In || source[c.Args[j].Index] == "" {
				continue
			}
			b, ok := own[place{int(c.Layer), source[c.Args[j].Index], at[i]}]
			for turn := at[i] - 1; !ok && turn >= 0; turn-- { // a selection that is kept
				b, ok = own[place{int(c.Layer), source[c.Args[j].Index], turn}]
			}
			if !ok {
				return nil, fmt.Errorf("the capture does not have the %s that call %d, %s of layer %d, reads",
					source[c.Args[j].Index], i, c.Kernel, c.Layer)
			}
			c.Args[j].Index = b.Index
		}
	}
	return out, nil
}

// within reports whether choices are experts, which ascend in a row, or positions or
// their end.
func within(o *Output, d *kernels.Dims) bool {
	low, high := int32(0), d.Groups
	switch o.Arg {
	case "experts":
		if d.TopK < 1 {
			return false
		}
		for row := range slices.Chunk(ints(o.Data), int(d.TopK)) {
			if !ascend(row) {
				return false
			}
		}
	case "sel":
		low, high = -1, d.N
	default: // experts' weights
		return true
	}
	for _, v := range ints(o.Data) {
		if v < low || v >= high {
			return false
		}
	}
	return true
}

// ascend reports whether every value is above the one before.
func ascend(values []int32) bool {
	for i := 1; i < len(values); i++ {
		if values[i] <= values[i-1] {
			return false
		}
	}
	return true
}

// place is what a layer chose, in one of its turns: the prediction layer chooses again
// for each draft.
type place struct {
	layer int
	name  string
	turn  int
}

// turnsOf says of each call how many drafts of the prediction layer had been fed on before.
func turnsOf(calls []kernels.Call) []int {
	turns, turn := make([]int, len(calls)), 0
	for i := range calls {
		if calls[i].Kernel == "feed" {
			turn++
		}
		turns[i] = turn
	}
	return turns
}

func kernelArg(c *kernels.Call, name string) *kernels.Buffer {
	for j, a := range kernels.Lookup(c.Kernel).Args {
		if a.Name == name {
			return &c.Args[j]
		}
	}
	return nil
}

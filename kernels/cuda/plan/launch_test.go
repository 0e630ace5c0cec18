package plan

import (
	"errors"
	"strings"
	"testing"

	"glmbatch/kernels"
)

// A grid that no GPU takes is refused with what to do, before anything is launched.
func TestGridLimit(t *testing.T) {
	for _, x := range []struct {
		grid  [3]uint32
		limit bool
	}{
		{[3]uint32{1 << 20, maxGrid, maxGrid}, false},
		{[3]uint32{1, maxGrid + 1, 1}, true},
		{[3]uint32{1, 1, maxGrid + 1}, true},
	} {
		err := newBuilder(&Target{}, &Memory{}).add(Launch{Entry: "any", Grid: x.grid, Params: &faultP{}})
		if (err != nil) != x.limit || x.limit && (!errors.Is(err, kernels.ErrKernel) ||
			!strings.Contains(err.Error(), "--max-batch-tokens")) {
			t.Errorf("grid %v: %v", x.grid, err)
		}
	}
}

// Steps that copy pages of caches are not worth a graph; those that gather the rows of
// logits are.
func TestOnce(t *testing.T) {
	gather := func(from, to uint32) []kernels.Call {
		return []kernels.Call{{Kernel: "gather_rows", Args: []kernels.Buffer{{Index: from, Offset: 64}, {Index: 9},
			{Index: to}}}}
	}
	if !Once(gather(3, 3)) || Once(gather(3, 4)) || Once(nil) {
		t.Error("a copy within a buffer, one to another, no calls:", Once(gather(3, 3)), Once(gather(3, 4)), Once(nil))
	}
}

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
		if (err != nil) != x.limit || x.limit && (!errors.Is(err, kernels.ErrKernel) || !strings.Contains(err.Error(), "--max-batch-tokens")) {
			t.Errorf("grid %v: %v", x.grid, err)
		}
	}
}

//go:build cuda

package cuda

import (
	"errors"
	"strings"
	"testing"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda/driver"
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
		err := (&device{}).enqueue("absent", &driver.Launch{Grid: x.grid})
		if !errors.Is(err, kernels.ErrKernel) || strings.Contains(err.Error(), "--max-batch-tokens") != x.limit {
			t.Errorf("grid %v: %v", x.grid, err)
		}
	}
}

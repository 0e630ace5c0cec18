//go:build cuda

package cuda

import (
	"fmt"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda/nccl"
)

// joinNCCL makes the ranks a group of NCCL's, if they are to use it. Where the
// table only prefers it, ranks do without a library that is not there.
func (g *group) joinNCCL() error {
	forced := g.options.Collective == ViaNCCL
	if !forced && g.target().Way(1<<62) != ViaNCCL {
		return nil
	}
	if g.shared() {
		if forced {
			return fmt.Errorf("%w: NCCL wants a GPU for each rank, %d share one", kernels.ErrDevice, g.perGPU)
		}
		return nil
	}
	lib, err := nccl.Open(g.options.NCCL)
	if err != nil {
		if forced {
			return fmt.Errorf("%w: %w", kernels.ErrDevice, err)
		}
		return nil
	}
	comms, err := lib.Join(len(g.ranks), func(r int) error { return g.ranks[r].use() })
	if err != nil {
		return fmt.Errorf("%w: join the ranks: %w", kernels.ErrDevice, err)
	}
	for r, c := range comms {
		g.ranks[r].nccl = c
	}
	return nil
}

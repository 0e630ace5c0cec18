package replay

import (
	"fmt"

	"glmbatch/kernels"
	"glmbatch/kernels/ranks"
)

// flusher empties caches by walking memory larger than they are.
type flusher struct {
	g    *ranks.Group
	to   kernels.Buffer
	from []byte
}

// maxEvict bounds the memory that is walked.
const maxEvict = 1 << 30

// newFlusher reserves the memory; with 0 bytes nothing is ever cold.
func newFlusher(g *ranks.Group, bytes int64) (*flusher, error) {
	f := &flusher{g: g}
	if bytes <= 0 {
		return f, nil
	}
	bytes = min(bytes, maxEvict)
	var err error
	sharing := kernels.Sharded
	if g.Info().Shared {
		sharing = kernels.Replicated
	}
	if f.to, err = g.Alloc(bytes, sharing); err != nil {
		return nil, fmt.Errorf("memory to empty the caches with: %w", err)
	}
	f.from = make([]byte, bytes)
	return f, nil
}

// repeats is how often a call is timed with a cold cache: flushing takes long.
func (f *flusher) repeats(warm int) int {
	if f.from == nil {
		return 0
	}
	return min(warm, 3)
}

// do copies through the memory of every rank, or once where ranks share it.
func (f *flusher) do() error {
	if f.g.Info().Shared {
		return f.g.UploadTo(0, f.to, f.from)
	}
	return f.g.Upload(f.to, f.from)
}

package checkpoint

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// Chunk is the buffer of one goroutine of [EachIndex], in bytes: it bounds the memory of
// any weight that is written.
const Chunk = 4 << 20

// EachIndex calls do for 0 to n-1 on several goroutines until one fails or ctx
// ends. Each has a buffer of [Chunk] bytes.
func EachIndex(ctx context.Context, n int, do func(ctx context.Context, i int, buf []byte) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			buf := make([]byte, Chunk)
			for {
				i := int(next.Add(1)) - 1
				if i >= n || ctx.Err() != nil {
					return
				}
				if err := do(ctx, i, buf); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

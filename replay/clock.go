package replay

import "glmbatch/kernels"

// stopwatch returns a function that says how many ns have passed.
func stopwatch() func() int64 {
	start := kernels.Now()
	return func() int64 { return kernels.Now() - start }
}

//go:build cuda

package cuda

import (
	"testing"
	"time"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda/driver"
	"glmbatch/kernels/kerneltest"
)

func BenchmarkKernels(b *testing.B) {
	if err := driver.Status(); err != nil {
		b.Skip(err)
	}
	held := hold(b)
	kerneltest.Benchmark(b, func(b testing.TB, ranks int) []kernels.Device {
		ds, err := Open(ranks, Options{like: held})
		if err != nil {
			b.Fatal(err)
		}
		return ds
	})
}

func TestDevice(t *testing.T) {
	if err := driver.Status(); err != nil {
		t.Skip(err)
	}
	held := hold(t)
	kerneltest.Run(t, func(t testing.TB, ranks int) []kernels.Device {
		ds, err := Open(ranks, Options{StepTimeout: time.Minute, like: held})
		if err != nil {
			t.Fatal(err)
		}
		return ds
	})
}

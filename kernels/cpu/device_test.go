package cpu

import (
	"slices"
	"testing"

	"go.uber.org/goleak"

	"glmbatch/kernels"
	"glmbatch/kernels/kerneltest"
)

func open(t testing.TB, ranks int) []kernels.Device { return threads(0)(t, ranks) }

func threads(n int) kerneltest.Open {
	return func(t testing.TB, ranks int) []kernels.Device {
		t.Helper()
		ds, err := Open(ranks, Options{Threads: n})
		if err != nil {
			t.Fatal(err)
		}
		return ds
	}
}

func TestKernels(t *testing.T) { kerneltest.Run(t, open) }

// TestThreads holds that the number of threads shows in no bit.
func TestThreads(t *testing.T) { kerneltest.SameBits(t, threads(1), threads(5)) }

// TestMixture holds that a list has the bits of its calls.
func TestMixture(t *testing.T) {
	kerneltest.Mixture(t, open, kernels.Dims{N: 256, K: 128, Groups: 16, TopK: 4}, [4]float32{1, 1, 1, 1}, 1, 8)
}

func BenchmarkKernels(b *testing.B) { kerneltest.Benchmark(b, open) }

// TestTable holds that the device has every kernel of the table and no other.
func TestTable(t *testing.T) {
	for _, k := range kernels.Table {
		if im := implementations[k.Name]; im == nil || im.units == nil || im.run == nil {
			t.Errorf("no implementation of %s", k.Name)
		}
	}
	for op := range operations {
		if !slices.ContainsFunc(kernels.Table, func(k kernels.Kernel) bool { return k.Op == op }) {
			t.Errorf("the table has no %s", op)
		}
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

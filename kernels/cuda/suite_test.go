//go:build cuda

package cuda

import (
	"testing"
	"time"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda/driver"
	"glmbatch/kernels/kerneltest"
)

// The suite opens the device hundreds of times: one that stays open keeps the
// GPU's context and kernels.
func TestDevice(t *testing.T) {
	if err := driver.Status(); err != nil {
		t.Skip(err)
	}
	held, err := Open(1, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := held[0].Close(); err != nil {
			t.Error(err)
		}
	})
	kerneltest.Run(t, func(t testing.TB, ranks int) []kernels.Device {
		ds, err := Open(ranks, Options{StepTimeout: time.Minute, like: held})
		if err != nil {
			t.Fatal(err)
		}
		return ds
	})
}

//go:build cuda

package cuda

import (
	"testing"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda/driver"
	"glmbatch/kernels/kerneltest"
)

func TestDevice(t *testing.T) {
	if err := driver.Status(); err != nil {
		t.Skip(err)
	}
	kerneltest.Run(t, func(t testing.TB, ranks int) []kernels.Device {
		ds, err := Open(ranks, Options{})
		if err != nil {
			t.Fatal(err)
		}
		return ds
	})
}

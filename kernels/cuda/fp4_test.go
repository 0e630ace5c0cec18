//go:build cuda

package cuda

import (
	"testing"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda/driver"
	"glmbatch/kernels/kerneltest"
)

// The kernels for 4-bit matrix units, with the instruction itself done by shuffles
// where the GPU lacks it: packing, quantising, fragments and scales are the same.
func TestNativeFP4(t *testing.T) {
	if err := driver.Status(); err != nil {
		t.Skip(err)
	}
	held := hold(t)
	open := func(t testing.TB, ranks int) []kernels.Device {
		ds, err := Open(ranks, Options{like: held, native4: true})
		if err != nil {
			t.Fatal(err)
		}
		return ds
	}
	for name := range natives {
		t.Run(string(name), func(t *testing.T) { kerneltest.One(t, open, name) })
	}
}

//go:build cuda

package cuda

import (
	"testing"

	"glmbatch/kernels/cuda/driver"
)

// Without a driver the binary starts, and Open says why there is no device.
func TestOpenWithoutDriver(t *testing.T) {
	if driver.Status() == nil {
		t.Skip("there is a driver")
	}
	if _, err := Open(1, Options{}); err == nil {
		t.Fatal("opened a device without a driver")
	} else {
		t.Log(err)
	}
}

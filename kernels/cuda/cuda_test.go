//go:build cuda

package cuda

import (
	"testing"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda/driver"
)

// Every row of the table has a launcher, and the other way round.
func TestLaunchersCoverTable(t *testing.T) {
	for _, k := range kernels.Table {
		if launchers[k.Name] == nil {
			t.Errorf("no launcher for %s", k.Name)
		}
	}
	for n := range launchers {
		if kernels.Lookup(n) == nil {
			t.Errorf("launcher %s is not in the table", n)
		}
	}
}

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

//go:build !cuda

package cuda

import (
	"fmt"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda/driver"
)

// Open fails: this binary has no CUDA device.
func Open(ranks int, o Options) ([]kernels.Device, error) {
	return nil, fmt.Errorf("%w: %w", kernels.ErrDevice, driver.Status())
}

// TimeNCCL fails likewise.
func TimeNCCL(n int, o Options, bytes []int64, times int) (ns []int64, version string, err error) {
	return nil, "", fmt.Errorf("%w: %w", kernels.ErrDevice, driver.Status())
}

// Visible and NCCLVersion, too.
func Visible() ([]GPU, error) { return nil, driver.Status() }

func NCCLVersion(path string) (string, error) { return "", driver.Status() }

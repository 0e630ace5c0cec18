//go:build cuda

package cuda

import (
	"testing"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda/driver"
	"glmbatch/kernels/kerneltest"
)

// A mixture of experts at the shape of one of GLM-5's eight ranks, but for a quarter of the
// experts, where moe_up does with few rows what comes before it.
func TestPrologue(t *testing.T) {
	if err := driver.Status(); err != nil {
		t.Skip(err)
	}
	open := likeHeld(t)
	for _, x := range []struct {
		name    string
		d       kernels.Dims
		routing [4]float32
	}{
		{"glm-5", kernels.Dims{N: 6144, K: 256, Groups: 64, TopK: 8}, [4]float32{2.5, 1, 1, 1}},
		{"all experts", kernels.Dims{N: 6144, K: 64, Groups: 256, TopK: 8}, [4]float32{2.5, 1, 1, 1}},
		{"groups", kernels.Dims{N: 6144, K: 256, Groups: 48, TopK: 6}, [4]float32{1, 6, 3, 0}},
		{"narrow", kernels.Dims{N: 256, K: 128, Groups: 16, TopK: 4}, [4]float32{1, 1, 1, 1}},
	} {
		t.Run(x.name, func(t *testing.T) { kerneltest.Mixture(t, open, x.d, x.routing, 1, 2, 5, 8, 9, 64) })
	}
}

//go:build cuda

package cuda

import (
	"testing"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda/driver"
	"glmbatch/kernels/cuda/plan"
	"glmbatch/kernels/kerneltest"
)

// The kernels for 4-bit matrix units, with the instructions themselves done by plain
// code where the GPU lacks them: packing, quantising, fragments, shared memory and
// scales are the same.
func TestUnits4(t *testing.T) {
	if err := driver.Status(); err != nil {
		t.Skip(err)
	}
	held := hold(t)
	for units, name := range map[plan.Units4]string{plan.MMA4: "mma", plan.Tensor4: "tcgen05"} {
		open := func(t testing.TB, ranks int) []kernels.Device {
			ds, err := Open(ranks, Options{like: held, units4: units})
			if err != nil {
				t.Fatal(err)
			}
			return ds
		}
		for _, k := range []kernels.Name{"gemm_fp4a4", "moe_up_fp4a4", "moe_down_fp4a4"} {
			t.Run(name+"/"+string(k), func(t *testing.T) { kerneltest.One(t, open, k) })
		}
	}
}

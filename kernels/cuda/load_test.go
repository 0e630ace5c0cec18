//go:build cuda

package cuda

import (
	"math/rand/v2"
	"runtime"
	"testing"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda/driver"

	"gorgonia.org/cu"
)

// BenchmarkLoad is the rate at which weights come to the GPU: the experts of a
// layer and one large matrix, that are at hand or are put together first.
func BenchmarkLoad(b *testing.B) {
	if err := driver.Status(); err != nil {
		b.Skip(err)
	}
	block := make([]byte, 64<<20)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := 0; i < len(block); i += 8 {
		for j, v := 0, rng.Uint64(); j < 8; j, v = j+1, v>>8 {
			block[i+j] = byte(v)
		}
	}
	b.Run("link", func(b *testing.B) { // alone: what a rank's copies could reach
		ds, err := Open(1, Options{})
		if err != nil {
			b.Fatal(err)
		}
		defer ds[0].Close()
		d := ds[0].(*device)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := d.use(); err != nil {
			b.Fatal(err)
		}
		ptr, err := d.malloc(int64(len(d.pipe.memory)))
		if err != nil {
			b.Fatal(err)
		}
		defer cu.MemFree(cu.DevicePtr(ptr))
		b.SetBytes(16 * int64(len(d.pipe.memory)))
		for b.Loop() {
			for range 16 {
				if err := driver.ToDevice(ptr, d.pipe.memory, d.stream); err != nil {
					b.Fatal(err)
				}
			}
			if err := driver.Sync(d.stream); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, w := range []struct {
		name string
		kernels.Weights
	}{
		{"experts", kernels.Weights{Format: kernels.FP4, Count: 256, Rows: 512, Cols: 6144}},
		{"large", kernels.Weights{Format: kernels.BF16, Count: 1, Rows: 5120, Cols: 6144}},
	} {
		data, scales := w.Rows*w.Cols*2, 0
		if w.Format == kernels.FP4 {
			data, scales = w.Rows*w.Cols/2, w.Rows*w.Cols/16
		}
		read := func(i int) kernels.Matrix {
			at := i * 4096
			return kernels.Matrix{Data: block[at : at+data], Scales: block[at : at+scales], Global: 1}
		}
		for _, copied := range []bool{false, true} {
			name := w.name + "/ready"
			if copied {
				name = w.name + "/copied"
			}
			b.Run(name, func(b *testing.B) {
				ds, err := Open(1, Options{})
				if err != nil {
					b.Fatal(err)
				}
				defer ds[0].Close()
				w.Read = func(i int, a kernels.Alloc) (kernels.Matrix, error) {
					m := read(i)
					if copied {
						data, scales := a.Bytes(len(m.Data)), a.Bytes(len(m.Scales))
						copy(data, m.Data)
						copy(scales, m.Scales)
						m.Data, m.Scales = data, scales
					}
					return m, nil
				}
				b.SetBytes(int64(w.Count) * int64(data+scales))
				for b.Loop() {
					if _, err := ds[0].Load(w.Weights, kernels.Sharded); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

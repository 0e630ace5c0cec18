package cpu

import (
	"testing"

	"glmbatch/kernels"
	"glmbatch/kernels/ranks"
)

// BenchmarkLoad packs weights, by format.
func BenchmarkLoad(b *testing.B) {
	const rows, cols = 2048, 1536
	for _, f := range []kernels.Format{kernels.F32, kernels.BF16, kernels.FP4} {
		b.Run(string(f), func(b *testing.B) {
			m := kernels.Matrix{Global: 1, Data: make([]byte, kernels.WeightBytes(f, rows, cols))}
			if f == kernels.FP4 {
				m.Data, m.Scales = make([]byte, rows*cols/2), make([]byte, rows*cols/16)
			}
			b.SetBytes(kernels.WeightBytes(f, rows, cols))
			for b.Loop() {
				g, err := ranks.New(open(b, 1), ranks.Options{})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := g.Load(kernels.Sharded, func(int) kernels.Weights {
					return kernels.Weights{Name: "w", Format: f, Count: 1, Rows: rows, Cols: cols,
						Read: func(int, kernels.Alloc) (kernels.Matrix, error) {
							return m, nil
						}}
				}); err != nil {
					b.Fatal(err)
				}
				if err := g.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

package simd

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"glmbatch/kernels"
)

// BenchmarkRead is the plain read loop that matrix-vector products are compared
// with: 256 MiB of 64-byte lines, a sum of float32 squares in four registers.
func BenchmarkRead(b *testing.B) {
	data := make([]float32, 64<<20)
	for i := range data {
		data[i] = 1
	}
	for b.Loop() {
		active.sumSquares(data)
	}
	b.ReportMetric(4*float64(len(data))/float64(b.Elapsed().Nanoseconds())*float64(b.N), "GB/s")
}

// BenchmarkGemv streams one matrix of 256 MiB, in calls of 4 panels.
func BenchmarkGemv(b *testing.B) {
	for _, f := range weightFormats {
		const cols = 6144
		rows := Lanes * int(256<<20/PackedBytes(f, Lanes, cols))
		w := Weight{Format: f, Rows: rows, Cols: cols, Data: make([]byte, PackedBytes(f, rows, cols))}
		for i := range w.Data {
			w.Data[i] = 0x3c
		}
		x, y, s := make([]float32, cols), make([]float32, rows), new(Scratch)
		b.Run(string(f), func(b *testing.B) {
			for b.Loop() {
				for p := 0; p < w.Panels(); p += 4 {
					Gemm(Rows{Data: y}, Rows{Data: x}, 1, w, p, min(p+4, w.Panels()), s)
				}
			}
			b.ReportMetric(float64(len(w.Data))/float64(b.Elapsed().Nanoseconds())*float64(b.N), "GB/s")
		})
		if f != kernels.FP4 {
			continue
		}
		q := make([]byte, QuantBytes(cols))
		b.Run("fp4a8", func(b *testing.B) {
			for b.Loop() {
				for p := 0; p < w.Panels(); p += 4 {
					GemmA8(Rows{Data: y}, QuantRows{Data: q}, 1, w, p, min(p+4, w.Panels()), s)
				}
			}
			b.ReportMetric(float64(len(w.Data))/float64(b.Elapsed().Nanoseconds())*float64(b.N), "GB/s")
		})
	}
}

// BenchmarkGemm has products of large shards and of the tiny ones that many
// ranks leave.
func BenchmarkGemm(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, d := range []struct{ m, n, k int }{{64, 1536, 1536}, {64, 256, 256}, {8, 1536, 1536}, {4, 1536, 1536}, {2, 1536, 1536},
		{64, 32, 256}, {4, 32, 256}, {1, 32, 256}, {64, 256, 16}, {4, 256, 16}, {1, 256, 16}, {1, 48, 128}} {
		for _, f := range weightFormats {
			m, _ := matrix(rng, f, d.n, d.k)
			w, err := packed(f, d.n, d.k, m)
			if err != nil {
				b.Fatal(err)
			}
			x, y, s := normal(rng, d.m*d.k), make([]float32, d.m*d.n), new(Scratch)
			b.Run(fmt.Sprintf("%dx%dx%d/%s", d.m, d.n, d.k, f), func(b *testing.B) {
				for b.Loop() {
					Gemm(Rows{Data: y, Stride: d.n}, Rows{Data: x, Stride: d.k}, d.m, w, 0, w.Panels(), s)
				}
				b.ReportMetric(2*float64(d.m*d.n*d.k)/float64(b.Elapsed().Nanoseconds())*float64(b.N), "GFLOP/s")
			})
			if f != kernels.FP4 {
				continue
			}
			q := make([]byte, d.m*QuantBytes(d.k))
			for i := range d.m {
				QuantA8(q[i*QuantBytes(d.k):], x[i*d.k:(i+1)*d.k])
			}
			b.Run(fmt.Sprintf("%dx%dx%d/fp4a8", d.m, d.n, d.k), func(b *testing.B) {
				for b.Loop() {
					GemmA8(Rows{Data: y, Stride: d.n}, QuantRows{Data: q, Stride: QuantBytes(d.k)}, d.m, w, 0, w.Panels(), s)
				}
				b.ReportMetric(2*float64(d.m*d.n*d.k)/float64(b.Elapsed().Nanoseconds())*float64(b.N), "GFLOP/s")
			})
		}
	}
}

// BenchmarkPeak is the rate of multiply-adds from registers and the first cache:
// tiles with nothing around them.
func BenchmarkPeak(b *testing.B) {
	a, w, c := make([]float32, maxTile*256), make([]float32, 2*256*Lanes), make([]float32, maxTile*2*Lanes)
	var aoff, coff [maxTile]int64
	for i := range aoff {
		aoff[i], coff[i] = int64(i)*1024, int64(i)*128
	}
	rows := active.rows
	for b.Loop() {
		active.tile[rows-1](&c[0], &coff[0], &a[0], &aoff[0], &w[0], 64, 256, 0, 1)
	}
	b.ReportMetric(2*float64(rows*Lanes*256)/float64(b.Elapsed().Nanoseconds())*float64(b.N), "GFLOP/s")
}

func BenchmarkAttend(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, d := range []struct{ latent, rope, heads int }{{512, 64, 8}, {512, 64, 64}, {64, 16, 1}, {64, 16, 8}} {
		for _, f := range cacheFormats {
			c, _ := latentCache(rng, f, d.latent, d.rope, 2048)
			slots := make([]int32, 2048)
			for i, v := range rng.Perm(len(slots)) {
				slots[i] = int32(v)
			}
			q, o, s := normal(rng, d.heads*(d.latent+d.rope)), make([]float32, d.heads*d.latent), new(Scratch)
			b.Run(fmt.Sprintf("%dx%d+%d/%s", d.heads, d.latent, d.rope, f), func(b *testing.B) {
				for b.Loop() {
					Attend(o, q, d.heads, .1, c, slots, s)
				}
				ns := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
				b.ReportMetric(float64(len(c.Data))/ns, "GB/s")
				b.ReportMetric(float64(len(slots)*d.heads*(4*d.latent+2*d.rope))/ns, "GFLOP/s")
			})
		}
	}
}

func BenchmarkRows(b *testing.B) {
	x, y, z, e := make([]float32, 1536), make([]float32, 1536), make([]float32, 1536), make([]byte, 4*1536)
	run := func(name string, f func()) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				f()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(x)), "ns/value")
		})
	}
	run("RMSNorm", func() { RMSNorm(y, x, z, 1e-5) })
	run("SiLUMul", func() { SiLUMul(y, x, z) })
	run("ExpSum", func() { ExpSum(y, x, 1) })
	run("Axpy", func() { Axpy(y, x, 1) })
	run("EncodeBF16", func() { EncodeBF16(e, x) })
	run("EncodeE4M3", func() { EncodeE4M3(e, x, 1) })
	run("QuantA4", func() { QuantA4(e, x, 1) })
	run("QuantA8", func() { QuantA8(e, x) })
}

package simd

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"glmbatch/kernels"
)

// best times f, of so much work, and reports the rate of the fastest of many
// samples: what the code can do while nothing else runs.
func best(b *testing.B, work float64, unit string, f func()) {
	f()
	start := time.Now()
	f()
	repeat := 1 + int(50*time.Microsecond/(1+time.Since(start)))
	least := time.Duration(1 << 62)
	for b.Loop() {
		start := time.Now()
		for range repeat {
			f()
		}
		least = min(least, time.Since(start))
	}
	b.ReportMetric(work*float64(repeat)/float64(least.Nanoseconds()), unit)
	b.ReportMetric(float64(least.Nanoseconds())/float64(repeat), "best-ns")
	b.ReportMetric(0, "ns/op") // of repeat calls: of no use
}

// piece is what a sample of the streaming benchmarks reads, of 256 MiB that no
// cache holds.
const piece, whole = 2 << 20, 256 << 20

// BenchmarkRead is the plain read loop that matrix-vector products are compared
// with: a sum of float32 squares in four registers.
func BenchmarkRead(b *testing.B) {
	data := make([]float32, whole/4)
	for i := range data {
		data[i] = 1
	}
	at := 0
	stream(b, piece, func() {
		active.sumSquares(data[at : at+piece/4])
		at = (at + piece/4) % len(data)
	})
}

// BenchmarkGemv streams one matrix in calls of 4 panels.
func BenchmarkGemv(b *testing.B) {
	const cols = 6144
	x, s := make([]float32, cols), new(Scratch)
	q := make([]byte, QuantBytes(cols))
	for _, f := range weightFormats {
		rows := 64 * int(whole/PackedBytes(f, 64, cols))
		w := Weight{Format: f, Rows: rows, Cols: cols, Data: make([]byte, PackedBytes(f, rows, cols))}
		for i := range w.Data {
			w.Data[i] = 0x3c
		}
		y, p, calls := make([]float32, rows), 0, int(piece/PackedBytes(f, 64, cols))
		bytes := calls * int(PackedBytes(f, 64, cols))
		next := func(call func(lo, hi int)) func() {
			return func() {
				for range calls {
					call(p, p+4)
					p = (p + 4) % w.Panels()
				}
			}
		}
		b.Run(string(f), func(b *testing.B) {
			stream(b, bytes, next(func(lo, hi int) { Gemm(Rows{Data: y}, Rows{Data: x}, 1, w, lo, hi, s) }))
		})
		if f == kernels.FP4 {
			b.Run("fp4a8", func(b *testing.B) {
				stream(b, bytes, next(func(lo, hi int) { GemmA8(Rows{Data: y}, QuantRows{Data: q}, 1, w, lo, hi, s) }))
			})
		}
	}
}

// stream times f, which reads so many bytes, and reports the rates of the
// fastest and of the median sample.
func stream(b *testing.B, bytes int, f func()) {
	var times []time.Duration
	for b.Loop() {
		start := time.Now()
		f()
		times = append(times, time.Since(start))
	}
	slices.Sort(times)
	b.ReportMetric(float64(bytes)/float64(times[0].Nanoseconds()), "best-GB/s")
	b.ReportMetric(float64(bytes)/float64(times[len(times)/2].Nanoseconds()), "median-GB/s")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkGemm has products of large shards and of the tiny ones that many
// ranks leave.
func BenchmarkGemm(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, d := range []struct{ m, n, k int }{{64, 1536, 1536}, {64, 256, 256}, {8, 1536, 1536}, {4, 1536, 1536},
		{2, 1536, 1536},
		{64, 32, 256}, {4, 32, 256}, {1, 32, 256}, {64, 256, 16}, {4, 256, 16}, {1, 256, 16}, {1, 48, 128},
		{1, 16, 16}, {3, 16, 16}} {
		for _, f := range weightFormats {
			m, _ := matrix(rng, f, d.n, d.k)
			w, err := packed(f, d.n, d.k, m)
			if err != nil {
				b.Fatal(err)
			}
			x, y, s := normal(rng, d.m*d.k), make([]float32, d.m*d.n), new(Scratch)
			b.Run(fmt.Sprintf("%dx%dx%d/%s", d.m, d.n, d.k, f), func(b *testing.B) {
				best(b, 2*float64(d.m*d.n*d.k), "GFLOP/s", func() {
					Gemm(Rows{Data: y, Stride: d.n}, Rows{Data: x, Stride: d.k}, d.m, w, 0, w.Panels(), s)
				})
			})
			if f != kernels.FP4 {
				continue
			}
			q := make([]byte, d.m*QuantBytes(d.k))
			for i := range d.m {
				QuantA8(q[i*QuantBytes(d.k):], x[i*d.k:(i+1)*d.k])
			}
			b.Run(fmt.Sprintf("%dx%dx%d/fp4a8", d.m, d.n, d.k), func(b *testing.B) {
				best(b, 2*float64(d.m*d.n*d.k), "GFLOP/s", func() {
					GemmA8(Rows{Data: y, Stride: d.n}, QuantRows{Data: q, Stride: QuantBytes(d.k)}, d.m, w,
						0, w.Panels(), s)
				})
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
	best(b, 2*float64(rows*Lanes*256), "GFLOP/s", func() {
		active.tile[rows-1](&c[0], &coff[0], &a[0], &aoff[0], &w[0], 64, 256, 0, 1, 1)
	})
}

func BenchmarkAttend(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, d := range []struct{ latent, rope, heads int }{{512, 64, 8}, {512, 64, 64}, {64, 16, 1}, {64, 16, 8}} {
		for _, f := range cacheFormats {
			c, _ := latentCache(rng, f, d.latent, d.rope, 256)
			slots := make([]int32, 256)
			for i, v := range rng.Perm(len(slots)) {
				slots[i] = int32(v)
			}
			q, o, s := normal(rng, d.heads*(d.latent+d.rope)), make([]float32, d.heads*d.latent), new(Scratch)
			b.Run(fmt.Sprintf("%dx%d+%d/%s", d.heads, d.latent, d.rope, f), func(b *testing.B) {
				flops := float64(len(slots) * d.heads * (4*d.latent + 2*d.rope))
				best(b, flops, "GFLOP/s", func() { Attend(o, q, d.heads, .1, c, slots, s) })
			})
		}
	}
}

func BenchmarkRows(b *testing.B) {
	x, y, z, e := make([]float32, 1536), make([]float32, 1536), make([]float32, 1536), make([]byte, 4*1536)
	run := func(name string, f func()) {
		b.Run(name, func(b *testing.B) {
			best(b, float64(len(x)), "Gvalue/s", f)
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

package kerneltest

import (
	"fmt"
	"testing"

	"glmbatch/kernels"
)

// Benchmark times every example of the table on one rank. GB/s and GFLOP/s are
// of the least work that the table's cost formula knows.
func Benchmark(b *testing.B, open Open) {
	for i := range kernels.Table {
		k := &kernels.Table[i]
		for n, d := range k.Examples {
			b.Run(fmt.Sprintf("%s/%d", k.Name, n), func(b *testing.B) { timeExample(b, open, k, n, d) })
		}
	}
}

func timeExample(b *testing.B, open Open, k *kernels.Kernel, n int, d kernels.Dims) {
	g := opened(b, open(b, 1))
	c := g.place(newExample(k, n, d, 1, false), false).call
	list, spans := []kernels.Call{c}, [][]kernels.Span{make([]kernels.Span, 1)}
	var ns int64
	for b.Loop() {
		if err := g.g.Run(list, spans); err != nil {
			b.Fatal(err)
		}
		ns += spans[0][0].End - spans[0][0].Start
	}
	cost := c.Cost(spans[0][0].Groups)
	each := float64(ns) / float64(b.N)
	b.ReportMetric(each, "span-ns")
	b.ReportMetric(float64(cost.HBM)/each, "GB/s")
	b.ReportMetric(float64(cost.FLOPs)/each, "GFLOP/s")
}

package kerneltest

import (
	"fmt"
	"testing"

	"glmbatch/kernels"
)

// again checks that a list leaves in outs, which have names, what its calls leave there
// one by one, also the last time that it comes again: devices may launch it in other
// pieces then.
func (b *bench) again(t *testing.T, calls []kernels.Call, outs []kernels.Buffer, names ...string) {
	t.Helper()
	var want [][][]byte
	for _, c := range calls {
		want = b.do(c, outs...)
	}
	for range 4 {
		for _, o := range outs {
			if err := b.g.Upload(o, make([]byte, o.Len)); err != nil {
				t.Fatal(err)
			}
		}
		got := b.run(calls, outs...)
		for i, name := range names {
			if j := firstDifference(got[i][0], want[i][0]); j >= 0 {
				t.Fatalf("%s: value %d is %g in the list, %g alone", name, j/4, float32At(got[i][0], j/4),
					float32At(want[i][0], j/4))
			}
		}
	}
}

// Products checks a list of products of the same rows of k columns, by weights of so
// many rows each.
func Products(t *testing.T, open Open, kernel kernels.Name, k int32, n []int32, rows ...int32) {
	b := opened(t, open(t, 1))
	var weights []kernels.Buffer
	for i, n := range n {
		w := newWeights(uint64(i+1), kernels.Lookup(kernel).Format, kernels.Multiply, 1, int(n), int(k))
		buf, err := b.g.Load(kernels.Sharded, func(int) kernels.Weights { return w.Weights })
		if err != nil {
			t.Fatal(err)
		}
		weights = append(weights, buf)
	}
	for _, m := range rows {
		t.Run(fmt.Sprintf("rows=%d", m), func(t *testing.T) {
			x := b.alloc(4 * int64(m*k))
			if err := b.g.Upload(x, noiseFrom(int(m), x.Len)); err != nil {
				t.Fatal(err)
			}
			var calls []kernels.Call
			var outs []kernels.Buffer
			var names []string
			for i, n := range n {
				outs, names = append(outs, b.alloc(4*int64(m*n))), append(names,
					fmt.Sprintf("product %d, %dx%d", i, n, k))
			}
			for len(calls) < 8 { // fewer are launched one by one; what writes the same comes later
				for i, n := range n {
					calls = append(calls, kernels.Call{Kernel: kernel, Dims: kernels.Dims{M: m, N: n, K: k},
						Args: []kernels.Buffer{weights[i], x, outs[i]}})
				}
			}
			b.again(t, calls, outs, names...)
		})
	}
}

package timeline_test

import (
	"fmt"

	"glmbatch/kernels"
	"glmbatch/replay/timeline"
)

// A step as it ran becomes rows: the step, what the host did in it, and each call.
func ExampleRows() {
	at := func(from, to int64) kernels.Interval { return kernels.Interval{Start: from, End: to} }
	t := kernels.Trace{Step: 3, Kind: kernels.Decode,
		Times: kernels.Times{Wall: at(0, 100), Schedule: at(0, 5), Upload: at(5, 8), Launch: at(8, 10),
			Device: at(10, 95), Sample: at(95, 100)},
		Calls: []kernels.Call{{Kernel: "gemm_bf16", Dims: kernels.Dims{M: 1, N: 64, K: 64}}},
		Spans: [][]kernels.Span{{{Start: 12, End: 90}}},
	}
	for _, r := range timeline.Rows(nil, &t, 0) {
		fmt.Printf("%-7s %-10s %3d %3d\n", r.Lane, r.Kernel, r.StartNS, r.EndNS)
	}
	// Output:
	// host    decode       0 100
	// host    schedule     0   5
	// host    upload       5   8
	// host    launch       8  10
	// host    wait        90  95
	// host    sample      95 100
	// device  gemm_bf16   12  90
}

func ExampleUnion() {
	busy := timeline.Union([]timeline.Interval{{Start: 5, End: 9}, {Start: 0, End: 3}, {Start: 8, End: 12}})
	fmt.Println(busy)
	// Output:
	// [{0 3} {5 12}]
}

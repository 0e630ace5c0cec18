package attribute_test

import (
	"fmt"

	"glmbatch/datasets"
	"glmbatch/replay/attribute"
	"glmbatch/replay/timeline"
)

// A ledger closes: the classes' own times and the gaps add up to the step.
func Example() {
	rows := []datasets.Span{
		{Rank: -1, Lane: "host", Kernel: "decode", Class: "host", Evidence: timeline.RoleStep, Call: -1, Layer: -1,
			StartNS: 0, EndNS: 100},
		{Lane: "device", Kernel: "gemm_bf16", Class: "gemm.bf16", StartNS: 10, EndNS: 60},
		{Lane: "device", Kernel: "rms_norm", Class: "norm", StartNS: 60, EndNS: 80},
	}
	var names datasets.Names
	events := timeline.Events(rows, &names)
	a := attribute.New(&names, attribute.Options{})
	a.Step(0, events[0])
	s := a.Sections()[0]
	sum := int64(0)
	for _, x := range s.Ledger {
		sum += x.NS
		if x.NS > 0 {
			fmt.Println(x.Name, x.NS)
		}
	}
	fmt.Println("sum", sum, "wall", s.Wall)
	// Output:
	// gemm.bf16 50
	// norm 20
	// unexplained 30
	// sum 100 wall 100
}

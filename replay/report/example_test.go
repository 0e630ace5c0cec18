package report_test

import (
	"fmt"
	"log"

	"glmbatch/datasets"
	"glmbatch/replay/report"
	"glmbatch/replay/timeline"
)

// A report of rows in memory.
func ExampleSource() {
	rows := []datasets.Span{
		{Rank: -1, Lane: "host", Kernel: "decode", Class: "host", Evidence: timeline.RoleStep, Call: -1, Layer: -1,
			StartNS: 0, EndNS: 1000},
		{Lane: "device", Kernel: "gemm_bf16", Class: "gemm.bf16", StartNS: 0, EndNS: 900},
		{Lane: "device", Kernel: "rms_norm", Class: "norm", StartNS: 900, EndNS: 1000},
	}
	r, err := report.Source{Path: "example", Rows: rows}.Report(report.Options{NoMachine: true})
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range r.Findings[1:] { // behind the bound
		fmt.Println(f.Text)
	}
	// Output:
	// gemm.bf16 is 90 % of the decode step (0.001 of 0.001 ms) and 90 % of all kernels' time, in 1 call
}

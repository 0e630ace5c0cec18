package main

import (
	"cmp"
	"fmt"

	"glmbatch/engine/fit"
	"glmbatch/engine/glm5"
)

// layouts are the values of --layout.
var layouts = []string{string(glm5.Latency), string(glm5.Throughput)}

const layoutUsage = "latency: ranks share each row's attention; throughput: each rank has rows, caches and whole attention of its own, and they meet for MLPs and experts"

// limits are the most tokens and sequences of a step, on each rank where those have their own:
// what was asked for, of all ranks, or the usual ones.
func limits(o *glm5.Options, device string, tokens, seqs int) {
	n := o.Homes()
	o.MaxRows = cmp.Or((tokens+n-1)/n, fit.Rows(device, *o))
	o.MaxSeqs = cmp.Or((seqs+n-1)/n, defaultSeqs)
}

// cachesOf is what there is of caches.
func cachesOf(f *fit.Fit) string {
	if f.Caches > 1 {
		return fmt.Sprintf("%d caches", f.Caches)
	}
	return "caches"
}

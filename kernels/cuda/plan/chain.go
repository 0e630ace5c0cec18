package plan

import (
	"slices"

	"glmbatch/kernels"
)

// chain lays the calls on a chain of launches, each of which waits for the one
// before it. A call that takes segments shares the first launch that has room behind
// those that it depends on, or with the silu_mul that it can do itself; what writes
// caches for one row takes longer than its norm, and shares one with a product. A call with
// launches of its own, and q_absorb, comes right before the first call that needs it, or
// with those that a fusion lets it share a launch with.
func chain(calls []kernels.Call, arch *Architecture) [][]int {
	var chain [][]int
	var room []int                   // segments left in each launch
	at := make([]int, len(calls))    // launch of each call; -1: none yet
	first := make([]int, len(calls)) // launch that each call may share at the earliest
	open := func(i, segments int) {
		for n := first[i]; n < len(chain) && segments == 0; n++ {
			if arch.beside(calls, chain[n], i) {
				at[i], chain[n] = n, append(chain[n], i)
				return
			}
		}
		at[i] = len(chain)
		chain, room = append(chain, []int{i}), append(room, segments)
	}
	deps := dependencies{}
	for i := range calls {
		for _, j := range deps.add(i, &calls[i]) {
			if at[j] < 0 {
				open(j, 0)
			}
			if f := arch.after(&calls[j], &calls[i]); f != nil && (f.Build == nil || len(chain[at[j]]) == 1) {
				first[i] = max(first[i], at[j])
			} else {
				first[i] = max(first[i], at[j]+1)
			}
		}
		n := segmentsOf(&calls[i])
		fused := first[i] < len(chain) && len(chain[first[i]]) == 1 &&
			arch.built(&calls[chain[first[i]][0]], &calls[i]) != nil
		if n == 0 || fused || calls[i].Kernel == "q_absorb_bf16" {
			at[i] = -1
			if l := first[i]; l < len(chain) && arch.joins(calls, chain[l], i) {
				at[i], chain[l], room[l] = l, append(chain[l], i), 0
			}
			continue
		}
		where := func(product bool) int {
			l := first[i]
			for l < len(chain) && (room[l] < n || product && !multiplies(calls, chain[l])) {
				l++
			}
			return l
		}
		l := where(calls[i].Dims.M == 1 && writesCache(&calls[i]))
		if l == len(chain) {
			l = where(false)
		}
		if l == len(chain) {
			open(i, maxSegments-n)
			continue
		}
		at[i], chain[l] = l, append(chain[l], i)
		room[l] -= n
	}
	for i := range calls {
		if at[i] < 0 {
			open(i, 0)
		}
	}
	return chain
}

func writesCache(c *kernels.Call) bool {
	op := kernels.Lookup(c.Kernel).Op
	return op == "latent_write" || op == "index_write"
}

// multiplies reports whether a launch has a product.
func multiplies(calls []kernels.Call, launch []int) bool {
	return slices.ContainsFunc(launch, func(i int) bool { return kernels.Lookup(calls[i].Kernel).Op == "gemm" })
}

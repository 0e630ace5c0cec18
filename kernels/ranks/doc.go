// Package ranks runs one program on the n devices of a tensor-parallel group.
//
// There is one type, [Group]. It makes the same allocations on every device, so
// that a buffer's index is the same on all ranks, and runs a list of calls on
// all of them at once, from one goroutine a rank.
//
// Caveat: after an error of a list the ranks' memory is in an unknown state; the
// group can only be closed.
package ranks

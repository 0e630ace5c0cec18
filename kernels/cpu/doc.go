// Package cpu is the reference device: every kernel of the table on the
// processor's cores.
//
// [Open] makes one [kernels.Device] for each rank. The ranks of a group live on
// one hub: one memory, in which replicated buffers are kept once, and one set
// of worker threads. When all ranks have started the same list, the workers
// execute it call by call. A call is cut into parts (of all ranks, or once for
// all ranks when the call is replicated), so every core works at any number of
// ranks, and a small call is never cut.
//
// Caveats. Ranks share memory and threads, so a rank's span is the whole call
// (see [kernels.Trace]); a replicated call may only touch replicated buffers.
// What a kernel is called with is checked where it is used: a bad page, slot,
// expert or token ends the run with an error.
package cpu

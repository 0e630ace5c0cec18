// Package plan turns a list of calls into the kernel launches of a GPU, without one: what
// to launch is a pure function of the calls, the GPU and where memory is.
//
// There are only a few types: [Target] (a GPU of some [Architecture], and its group),
// [Memory] (addresses), [Launch], and the [Plan] that [Each] or [Together] makes. Package
// cuda owns what they describe, and emits the launches.
//
// A [Variant] is a row of a table: the operation and formats that it is for, when it
// holds, what it launches, and why there is such a kernel. A call takes the first row that
// holds: of [Architecture.Variants] (sm90.go, sm100.go, sm120.go), then of those that
// every GPU has (portable.go). A [Fusion] is a row too: two calls that may share a launch.
// How the calls of a list are laid on launches is chain.go's. To add a kernel: its .cu
// file, its parameters, its name in images.go, its row; then go test -update.
//
// Words that are ours, with the field's:
//
//   - product: a matrix product of few rows (GEMV), by a warp for each slice of k; brief
//     (short slices), held (weights stay in shared memory) and broad (blocks of several
//     tiles) are its forms
//   - team: a product by clusters whose blocks share k (cluster GEMM); few: split-k by
//     warpgroups; wide: all of k in a block; per head: batched
//   - bundle: small calls side by side in a launch (horizontal fusion), each a segment
//   - opening: moe_up's prologue, which chooses experts; ring: weights by bulk copies
//   - panels: packed activations, rows split into two BF16 parts as wgmma reads them
//   - settled, early, late, waits: what may be read before the wait of programmatic
//     dependent launch (griddepcontrol)
//   - crowded: ranks that share a GPU; reach: positions that a row can attend to
//
// Goldens in testdata are plans as text: of each example shape of the table, and of
// GLM-5's steps.
package plan

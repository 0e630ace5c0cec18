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
// How the calls of a list are laid on launches is chain.go's. What kernels are given is
// in src/*/params.h, and in params.go, which gen makes of it. To add a kernel: its .cu
// file, its name in images.go, its row; then go test -update.
//
// Names are the field's: gemv (at most 8 rows), split-k, cluster, batched, wgmma, ws
// (warp-specialized), persistent, split-kv, hfuse (horizontal fusion: small calls side by
// side in a launch, each a segment). Words that are ours:
//
//   - panels: packed activations, rows split into two BF16 parts as wgmma reads them
//   - latent: attention to entries of 512 latents and 64 rotary values, GLM-5's
//   - slices: parts of a product's k, added in order; shares: blocks that have them
//   - groups: rows of one expert; pairs: (token, expert); direct: each pair a group
//   - units: 64 columns of 16 rows of NVFP4 weights; tiles: 16 rows of any
//   - settled, early, late, waits, follows: what may be read before the wait of
//     programmatic dependent launch (griddepcontrol)
//   - prologue: the calls in front of moe_up that its blocks do themselves
//   - crowded: ranks share a GPU; reach: positions that a row can attend to
//   - chain, lanes: how the calls of a list share launches, and what runs side by side
//   - feed: the kernel that makes the next step's inputs of what was sampled
//
// Goldens in testdata are plans as text: of each example shape of the table, and of
// GLM-5's steps.
//
//go:generate go run ./gen
package plan

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
// Goldens in testdata are plans as text: of each example shape of the table, and of
// GLM-5's steps.
package plan

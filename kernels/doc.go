// Package kernels says what a step is made of.
//
// A step is data: a list of [Call] that every rank runs in order on its own
// shard. A [Device] executes such a list and may say when each call ran
// ([Span]). Everything else that knows about kernels reads one [Table]: the
// model's program, the devices, the timeline, the roofline, reports, tests and
// benchmarks.
//
// There are only a few types: [Kernel] (a row of the table), [Call] with its
// [Dims] and [Buffer] arguments, [Span], [Trace] (a list with the spans of one
// step), [Weights] (what a checkpoint hands to a device) and [Device].
//
// Conventions that hold for every kernel:
//
//   - Activations are float32, row-major, one row a token. A buffer with a
//     pitch is a view of columns of wider rows.
//   - The order of every reduction follows from the row's own shape: never from
//     the number of other rows, their order or the number of threads. So a
//     row's result has the same bits in any batch.
//   - Ties in a selection go to the lower index.
//   - A new operation is a row of Table, which has a kernel for each number format;
//     an entry of the CPU device's table; a reference in kerneltest; and rows of the
//     CUDA device's plan, which has several kernels for most. No interface moves.
package kernels

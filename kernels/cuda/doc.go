// Package cuda is the NVIDIA device: every row of the kernel table in CUDA C++,
// compiled ahead of time for the architectures in images/ and embedded.
//
// Build it with the tag cuda; without it [Open] says that the binary has none.
// One binary starts anywhere: the driver is found at run time.
//
// A list of calls that repeats (a decode step of the same shape) is captured
// once as a CUDA graph and launched as one. Lengths, positions and page tables
// are read from buffers, so the graph holds for every step of that shape.
//
// Every kernel can stamp its own start (first block) and end (last block) from
// the GPU's clock into a buffer, inside graphs too; spans are those stamps on
// the process's clock.
//
// Ranks exchange by pushing values into each other's memory ([Collective]), in one
// kernel with the sum, the residual and the norm; sums have the bits of additions
// in the ranks' order. Ranks may share a GPU: then their kernels wait for each
// other in few blocks only, so that none keeps another from starting. Every wait
// ends after [Options.StepTimeout], or at once when another rank has failed; the
// group is over then. [Options.Fault] makes a rank fail, to try it.
//
// Weights are repacked into the order in which the matrix units read them. The
// products split float32 activations into two BF16 values, so that BF16 and
// NVFP4 weights lose nothing that a float32 product would keep.
package cuda

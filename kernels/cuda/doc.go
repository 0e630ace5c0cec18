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
// # Numbers
//
// Activations, sums and the residual are float32. Products run on the BF16 matrix
// units: an input is the sum of two BF16 values, which leaves off at most 2^-17 of
// it, and weights are exact: BF16 as they are, FP8 codes and the products of NVFP4
// codes with their block scales as BF16 values; per-tensor scales multiply sums.
// Where a call says exact, as programs with float32 caches do, products are float32
// throughout, on plain kernels that are there for checks.
//
// Attention reads BF16 and FP8 entries in place; an FP8 entry's scales multiply sums,
// never its values. Softmax is float32. Keys of a float32 indexer cache are split as
// inputs are.
//
// 4-bit activations (formats fp4a4) are E2M1 times an E4M3 scale, exact in BF16, so
// their products are too. GPUs of compute capability 12.0 multiply them as they are
// (mma.sync with block scales, src/fp4mma.cu), as do those of 10.0 (tcgen05.mma,
// src/fp4tensor.cu): compiled, and seen in the disassembly that
// images/INSTRUCTIONS.txt counts, but never run on such a GPU. Tests run the same
// kernels with plain code for those instructions.
//
// # Order of sums
//
// A row's bits do not depend on the batch, its order, chunks or ranks' timing. A
// product cuts k into slices by the weight's shape; a slice is added in ascending k,
// lower halves of inputs before upper ones, then the slices in order. Attention cuts
// a row's own positions, in order, and adds the pieces in order. A token's experts are
// added in ascending order, ranks in theirs.
package cuda

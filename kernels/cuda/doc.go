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
// Ranks exchange by pushing values into each other's memory ([Collective]), in one
// kernel with the sum, the residual and the norm; sums have the bits of additions
// in the ranks' order. Ranks may share a GPU: then their kernels wait for each
// other in few blocks only, so that none keeps another from starting. Every wait
// ends after [Options.StepTimeout], or at once when another rank has failed; the
// group is over then. [Options.Fault] makes a rank fail, to try it.
//
// Which kernels a list launches, in which grids and with which parameters, is decided
// by package plan, without a GPU; a device here owns memory, streams and clocks, and
// emits the launches.
//
// # Kernels
//
// There is code for compute capability 9.0, 10.0 and 12.0, and PTX of 9.0 for later
// ones; all of it was compiled, and what an H200 takes was run. Every GPU has all of
// the table. src has a folder for each operation, whose files are named by it; sm90_,
// sm100_ or sm120_ in front: for that architecture alone. A row's bits are the same on
// each path of a line:
//
//   - gemm: at most 8 rows gemv.cuh, gemv_prefetch.cuh, gemv_short_k.cuh and
//     gemv_multi_tile.cu; more gemm.cu, on 9.0 sm90_gemm_cluster.cu, sm90_gemm_batched.cu,
//     sm90_gemm_persistent.cu and sm90_gemm_wgmma.cu (also split-k). FP8 weights with scales for blocks: at most
//     16 rows gemm.cu; more as BF16, which pack_fp8_block.cu makes of them
//   - gemm and moe with 4-bit activations: sm120_w4a4.cu, sm100_w4a4.cu; on other GPUs
//     they are rounded to 4 bits and go through the kernels above. gemm_exact.cu does not
//     round. pack_weights.cu packs weights at load
//   - moe: moe.cu; FP4 of few rows moe_up_fp4.cu, sm90_moe_up_fp4_ws.cu (warp-specialized)
//     and moe_down_fp4.cu, of many sm90_moe_wgmma.cu and sm90_moe_up_wgmma_128.cu;
//     moe_route.cu chooses the experts
//   - attention: mla_split_kv.cu; of GLM-5's sizes mla_fp8_cluster.cu, of many rows
//     mla_fp8_persistent.cu, and mla_bf16_cluster.cu
//   - indexer: index_logits.cu, sm90_index_logits.cu; index_topk.cu, of more than 16,384
//     positions index_topk_cluster.cu
//   - norm: rowwise.cu; comm: collectives.cu, of ranks that have rows of their own
//     row_collectives.cu; sample: sample.cu; device: host.cu (copies, stamps, the clock).
//     device/ and mma/ have the headers that all are written with
//
// Small calls that do not wait for each other share a launch, gemm/hfuse.cu; moe_up has
// those in front of it as its prologue, moe_prologue.cuh; q_absorb goes with index_topk,
// q_absorb.cuh.
//
// # Times
//
// Every kernel can stamp its own start and end from the GPU's clock (%globaltimer,
// 32 ns a tick) into a buffer, inside graphs too. A call starts when its first block
// has seen the kernels end that it waits for: what it did early, such as asking for
// its weights, was in others' time. It ends when its last block does. Lists without
// spans have no stamps. Copies are timed by events of the stream and hang on the last
// call's end, launches by the host's clock. A step's inputs and what it brings back are
// copied by a kernel where they are small.
//
// The GPU's clock is read at open and every second by a kernel that answers the host,
// and in between its drift so far is assumed to go on; Info says how far that was off.
//
// [Profiler] is NVIDIA's CUPTI as the check of all this, loaded at run time. It does
// not see when a call that was launched early could begin, so such calls are compared
// from the end of those that they wait for, which takes in the gap between.
//
// # Numbers
//
// Activations, sums and the residual are float32. Products run on the BF16 matrix
// units: an input is the sum of two BF16 values, which leaves off at most 2^-17 of
// it, and weights are exact: BF16 as they are, FP8 codes and the products of NVFP4
// codes with their block scales as BF16 values; per-tensor scales multiply sums. FP8
// codes with scales for blocks are multiplied with them and rounded to BF16, as they
// would be by a program that loads such a checkpoint as BF16.
// Where a call says exact, as programs with float32 caches do, products are float32
// throughout, on plain kernels that are there for checks. Where it says that inputs are
// rounded to BF16, the lower of the two values does not count: kernels of few rows read
// weights and gain nothing by it, and make it 0; those of many have half the products to
// do. The sums of both are the same, as adding 0 changes none. The indexer's queries are
// rounded likewise where its call says so.
//
// Attention reads BF16 and FP8 entries in place. FP8 codes are exact in BF16 and in
// float16; queries and likelihoods are the sums of two such values, and an entry's
// scales multiply those or sums, never the codes. Softmax is float32. Keys of a
// float32 indexer cache are split as inputs are.
//
// 4-bit activations (formats fp4a4) are E2M1 times an E4M3 scale, exact in BF16, so
// their products are too. GPUs of compute capability 12.0 multiply them as they are
// (mma.sync with block scales, sm120_w4a4.cu), as do those of 10.0 (tcgen05.mma,
// sm100_w4a4.cu): compiled, and seen in the disassembly that images/MANIFEST.txt
// counts, but never run on such a GPU. Tests run the same kernels with plain code for
// those instructions.
//
// # Order of sums
//
// A row's bits do not depend on the batch, its order, chunks or ranks' timing. A
// product cuts k into slices by the weight's shape; a slice is added in ascending k,
// lower halves of inputs before upper ones (of FP4 experts each in a sum of its own),
// then the slices in order. Attention cuts a row's own positions, in order, and adds
// the pieces in an order that their number says: of FP8 entries in pairs, see
// attention/mla_512_64.cuh. A token's experts are added in ascending order, ranks in
// theirs.
package cuda

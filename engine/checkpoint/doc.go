// Package checkpoint reads model folders as the Hugging Face hub lays them out:
// config.json and safetensors, one file or shards with an index. It also writes
// them, shard by shard ([Writer]).
//
// Files are mapped into memory and nothing is read but what is asked for: a
// rank that takes its slice of a weight touches only that slice. How a weight is
// stored is found out weight by weight ([Checkpoint.Linear]): BF16, F32 or F16,
// or NVFP4 in the form of ModelOpt or of compressed-tensors. What config.json
// and hf_quant_config.json say about that is compared with it
// ([Checkpoint.Warnings]).
//
// There are four types to know: [Checkpoint], [Tensor] (one entry of a file),
// [Linear] (one weight, whatever its form) and [Writer].
//
// Caveat: a file that shrinks while it is mapped makes reads behind its new end
// fail in a way that ends a process (SIGBUS). Sizes are checked when files are
// opened and again for each tensor that is asked for, so what remains is the
// short time between that check and the copy. Replace weight files by renaming
// new ones into place; a mapped file then keeps its old contents.
package checkpoint

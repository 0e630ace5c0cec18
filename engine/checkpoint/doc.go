// Package checkpoint reads model folders as the Hugging Face hub lays them out:
// config.json and safetensors, one file or shards with an index. It also writes
// them, shard by shard ([Writer]).
//
// Nothing is read but what is asked for: a rank that takes its slice of a weight
// reads only those rows. How a weight is stored is found out weight by weight
// ([Checkpoint.Linear]): BF16, F32 or F16, FP8 with scales for blocks, rows or the
// whole, or NVFP4 in the form of ModelOpt or of compressed-tensors. What config.json
// and hf_quant_config.json say about that is compared with it
// ([Checkpoint.Warnings]); what they say that changes the arithmetic is asked for
// ([Checkpoint.Online]).
//
// There are four types to know: [Checkpoint], [Tensor] (one entry of a file),
// [Linear] (one weight, whatever its form) and [Writer].
//
// Files are read by calls and not mapped, so one that shrinks while it is in use
// gives an error that says so.
package checkpoint

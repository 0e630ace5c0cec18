// Package glm5 is the model: GLM-5 and its successors of the same architecture
// (glm_moe_dsa), as a list of kernel calls.
//
// [Config] is config.json, and [Config.Tensors] the one table of weights with
// the part of each that a rank has. [Load] takes a checkpoint to a group of
// ranks and returns a [Model]. [Model.Program] turns a [Batch] of token rows
// into the calls of one step; [Model.MTPProgram] does so for the prediction
// layer. program.go is the forward pass and reads from top to bottom.
//
// Attention is absorbed: queries are taken into the latent space and attend to
// the cached latents in place. Rows whose context is within the indexer's top-k
// attend to all of it and need no selection; rows beyond it come last in a
// batch and are scored, in blocks whose scores fit a bounded buffer. So what a
// row computes depends on its own position, never on the batch.
//
// The ranks share out attention in one of two ways: see [Layout]. In the throughput layout a
// step is still one list for all ranks, with as many places for rows as the rank with the most
// has; in those that are left over a rank computes the first token of a sequence that nobody
// has. The rows that there are meet before MLPs and experts, those of all ranks in one list, and
// part behind them. A row's bits are the same on whatever rank it is. The two layouts' bits
// differ with more than one rank: attention's output is a sum of each rank's heads in one and
// one sum over all heads in the other.
//
// Number formats belong to each weight. Weights with one input are one product
// where their formats agree, and follow apart where they do not.
//
// Caveats: memory is allocated once, for the largest step that [Options] allow.
// A model is for one goroutine. Experts are split by their inner width, not by
// expert, so every rank has work for every token.
package glm5

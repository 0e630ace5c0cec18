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
// Number formats belong to each weight. Weights with one input are one product
// where their formats agree, and follow apart where they do not.
//
// Caveats: memory is allocated once, for the largest step that [Options] allow.
// A model is for one goroutine. Experts are split by their inner width, not by
// expert, so every rank has work for every token.
package glm5

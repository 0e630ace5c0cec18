// Package verify compares a model with a reference's outputs: logits, hidden
// states after every layer, the experts chosen, the positions selected, greedy
// tokens, and the prediction layer's logits.
//
// [Expected] is what a reference computed, [Run] makes a [Report] of it.
//
// The reference upcasts stored weights and computes in float32. With a float32
// cache the engine must choose the same experts and positions and its logits
// may differ by 2e-3 at most. A BF16 cache rounds what attention reads: then
// 3e-2 are allowed and choices are counted, not demanded. With FP8 caches, or
// 8-bit activations of experts, differences are reported and nothing is
// demanded but the sanity of the figures.
package verify

// Package verify compares a model with a reference's outputs: logits, hidden
// states after every layer, the experts chosen, the positions selected, greedy
// tokens, and the prediction layer's logits.
//
// [Expected] is what a reference computed, [Run] makes a [Report] of it.
//
// The reference upcasts stored weights and computes in float32. With a float32
// cache the engine must choose the same experts and positions, and its logits
// may differ by 2e-3 at most. A choice that differs is settled where the engine's own
// scores of what was chosen by one side only are within rounding of each other
// ([Difference]): from that row and layer on the two have other inputs, and only
// the rows before are judged. Any other difference is a fault.
//
// Rounding moves values a little, but a choice that tips over moves them a lot:
// small random models route near ties. So a run with a rounded cache is also
// compared with the engine's own run without, and logits are judged up to the
// first row where a choice differs (the settled rows): by 3e-2 for a BF16
// cache. All rows are reported. For FP8 caches and 8-bit activations figures
// are reported and nothing is demanded.
package verify

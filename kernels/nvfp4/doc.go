// Package nvfp4 packs and unpacks NVFP4, the 4-bit format of GLM-5's released
// experts: E2M1 values, one E4M3 scale for each 16 along a row, and one float32
// scale for the tensor. A value is e2m1 * scale * global.
//
// The rules are those of NVIDIA's ModelOpt, whose checkpoints hold a tensor
// [N, K] as
//
//	weight          U8      [N, K/2]   column 2j in the low nibble of byte j
//	weight_scale    F8_E4M3 [N, K/16]
//	weight_scale_2  F32     []         amax / 2688, the largest value that codes can hold
//
// Rounding is to nearest, ties to the even code, saturating, as the hardware's
// conversion instructions do.
package nvfp4

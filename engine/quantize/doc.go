// Package quantize writes the NVFP4 form of a BF16 or FP8 checkpoint, as ModelOpt does
// without calibration: a weight is read twice, for its largest value and to be packed.
//
// There is one type, [Quantizer]. Its memory is a few times [checkpoint.Chunk], whatever
// the size of the checkpoint.
package quantize

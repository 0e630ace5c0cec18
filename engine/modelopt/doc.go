// Package modelopt is the form that NVIDIA's ModelOpt gives NVFP4 checkpoints: which
// weights are NVFP4 ([Quantized]), which tensors such a weight becomes ([Entries],
// [WriteScales]), and what configs say of it ([WriteConfigs], [Ignored]).
package modelopt

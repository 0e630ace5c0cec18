// Package gpus says which NVIDIA GPUs a machine has and how they are.
//
// [Read] asks NVML, the driver's management library, in binaries built with cgo
// and the tag cuda. Where it cannot, [Report] has only what the driver writes
// under /proc: its version and the GPUs' names.
//
// Caveat: NVML shows the GPUs of the machine. A program may see fewer of them
// (CUDA_VISIBLE_DEVICES), and in another order.
package gpus

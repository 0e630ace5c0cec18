//go:build !cuda

package cuda

// Built says whether this binary has the CUDA device.
const Built = false

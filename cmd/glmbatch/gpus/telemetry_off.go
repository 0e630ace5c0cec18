//go:build !cgo || !cuda

package gpus

import "glmbatch/telemetry"

// Watch returns what reads the GPUs at these places again and again, and ends that. why
// says why there is none.
func Watch([]string) (read func() *telemetry.GPU, end func(), why string) {
	return nil, func() {}, "this binary cannot ask NVML: it was built without the tag cuda"
}

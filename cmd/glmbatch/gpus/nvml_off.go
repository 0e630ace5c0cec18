//go:build !cgo || !cuda

package gpus

func read() Report {
	return Report{Fault: "this binary cannot ask NVML: it was built without the tag cuda"}
}

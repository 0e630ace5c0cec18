//go:build cuda

package cupti

// #cgo LDFLAGS: -ldl
// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"errors"
	"fmt"
	"unsafe"

	"glmbatch/kernels"
)

// Kernel is a kernel that ran. Times are ns of [kernels.Now].
type Kernel struct {
	Name       string
	Start, End int64
	Node       uint64 // of the graph that launched it, in the order of their creation; 0: no graph
}

// Libraries are tried in this order where no path is given: those that the
// system finds, then those of a CUDA toolkit.
var Libraries = []string{
	"libcupti.so.13", "libcupti.so.12",
	"/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.13", "/usr/local/cuda/lib64/libcupti.so.13",
	"/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.12", "/usr/local/cuda/lib64/libcupti.so.12",
}

// Profiler is the library, loaded. There is one a process.
type Profiler struct {
	Version uint32 // 130001 is 13.0; 28 is 12.9
	offset  int64  // CLOCK_MONOTONIC + offset = kernels.Now
}

// Load loads the library at path; "": the first of [Libraries] that is there.
func Load(path string) (*Profiler, error) {
	paths := Libraries
	if path != "" {
		paths = []string{path}
	}
	var errs []error
	for _, p := range paths {
		c := C.CString(p)
		e := C.glmbatch_cupti_load(c)
		C.free(unsafe.Pointer(c))
		if e == nil {
			return &Profiler{Version: uint32(C.glmbatch_cupti_version()), offset: clockOffset()}, nil
		}
		errs = append(errs, errors.New(C.GoString(e)))
	}
	if path == "" {
		return nil, fmt.Errorf("no libcupti: install the CUDA toolkit's CUPTI or name the library (%w)",
			errors.Join(errs...))
	}
	return nil, fmt.Errorf("load CUPTI: %w", errors.Join(errs...))
}

// clockOffset is the smallest of several readings: what delays one can only add.
func clockOffset() int64 {
	best := int64(1) << 62
	for range 16 {
		mono := int64(C.glmbatch_cupti_now())
		best = min(best, kernels.Now()-mono)
	}
	return best
}

func result(e *C.char) error {
	if e == nil {
		return nil
	}
	return errors.New("CUPTI: " + C.GoString(e))
}

// Start turns recording on for every GPU of the process.
func (p *Profiler) Start() error { return result(C.glmbatch_cupti_start()) }

// Stop turns it off.
func (p *Profiler) Stop() error { return result(C.glmbatch_cupti_stop()) }

// Take returns the kernels recorded since the last Take, in no order. All of
// them must have ended. dropped counts those that found no room.
func (p *Profiler) Take() (kernels []Kernel, dropped int, err error) {
	var list *C.struct_glmbatch_kernel
	var n, lost C.size_t
	err = result(C.glmbatch_cupti_take(&list, &n, &lost))
	defer C.free(unsafe.Pointer(list))
	for _, k := range unsafe.Slice(list, int(n)) {
		kernels = append(kernels, Kernel{Name: C.GoString(&k.name[0]), Start: int64(k.start) + p.offset,
			End: int64(k.end) + p.offset, Node: uint64(k.node)})
	}
	return kernels, int(lost), err
}

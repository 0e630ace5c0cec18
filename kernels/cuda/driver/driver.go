//go:build cuda

package driver

/*
#cgo CFLAGS: -I${SRCDIR}/include
#cgo LDFLAGS: -L${SRCDIR}/stub -ldl
#include "shim.h"

static CUresult x_attribute(CUfunction f, int a, int v) { return glmbatch_extra()->attribute(f, a, v); }
static CUresult x_begin(CUstream s) { return glmbatch_extra()->begin_capture(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL); }
static CUresult x_end(CUstream s, CUgraph *g) { return glmbatch_extra()->end_capture(s, g); }
static CUresult x_instantiate(CUgraphExec *e, CUgraph g) { return glmbatch_extra()->instantiate(e, g, 0); }
static CUresult x_upload(CUgraphExec e, CUstream s) { return glmbatch_extra()->upload(e, s); }
static CUresult x_graph_launch(CUgraphExec e, CUstream s) { return glmbatch_extra()->graph_launch(e, s); }
static CUresult x_exec_destroy(CUgraphExec e) { return glmbatch_extra()->exec_destroy(e); }
static CUresult x_graph_destroy(CUgraph g) { return glmbatch_extra()->graph_destroy(g); }
static CUresult x_graph_nodes(CUgraph g, size_t *n) { return glmbatch_extra()->graph_nodes(g, 0, n); }
static CUresult x_host_alloc(void **p, size_t n) { return glmbatch_extra()->host_alloc(p, n, 0); }
static CUresult x_host_free(void *p) { return glmbatch_extra()->host_free(p); }
static CUresult x_to_device(CUdeviceptr d, const void *s, size_t n, CUstream t) {
	return glmbatch_extra()->to_device(d, s, n, t);
}
static CUresult x_to_host(void *d, CUdeviceptr s, size_t n, CUstream t) {
	return glmbatch_extra()->to_host(d, s, n, t);
}
static CUresult x_set(CUdeviceptr d, unsigned char v, size_t n, CUstream t) {
	return glmbatch_extra()->set(d, v, n, t);
}
static CUresult x_arrived(CUevent e) { return glmbatch_extra()->event_query(e); }
static CUresult x_sync(CUstream s) { return glmbatch_extra()->sync(s); }
static const char *x_name(CUresult r) {
	const char *s = 0;
	if (glmbatch_extra()->error_name) glmbatch_extra()->error_name(r, &s);
	return s ? s : "unknown error";
}
static const char *x_string(CUresult r) {
	const char *s = 0;
	if (glmbatch_extra()->error_string) glmbatch_extra()->error_string(r, &s);
	return s ? s : "";
}
*/
import "C"

import (
	"errors"
	"fmt"
	"reflect"
	"unsafe"

	"gorgonia.org/cu"
)

// Error is a result code of the driver.
type Error int

func (e Error) Error() string {
	s := fmt.Sprintf("%s (%d): %s", C.GoString(C.x_name(C.CUresult(e))), int(e), C.GoString(C.x_string(C.CUresult(e))))
	if r := remedies[int(e)]; r != "" {
		s += "; " + r
	}
	return s
}

// Of is an error of package cu as an Error, which says more; others stay.
func Of(err error) error {
	if v := reflect.ValueOf(err); v.Kind() == reflect.Int &&
		v.Type().PkgPath() == reflect.TypeFor[cu.Stream]().PkgPath() {
		return Error(v.Int())
	}
	return err
}

// Codes that callers branch on.
const (
	OutOfMemory = Error(C.CUDA_ERROR_OUT_OF_MEMORY)
	NotReady    = Error(C.CUDA_ERROR_NOT_READY)
	NoImage     = Error(C.CUDA_ERROR_NO_BINARY_FOR_GPU)
)

func result(r C.CUresult) error {
	if r == C.CUDA_SUCCESS {
		return nil
	}
	return Error(r)
}

// Status is nil where the driver is there and has a GPU.
func Status() error {
	switch s := C.glmbatch_status(); {
	case s == -1:
		return errors.New("no NVIDIA driver: libcuda.so.1 was not found")
	case s != 0:
		return fmt.Errorf("the NVIDIA driver does not start: %w", Error(s))
	case C.glmbatch_extra().launch == nil:
		return errors.New("the NVIDIA driver is too old: CUDA 12.0 or newer is needed")
	}
	return nil
}

// Launch is one kernel launch. Params points to the kernel's one struct.
type Launch struct {
	Func    cu.Function
	Grid    [3]uint32
	Threads uint32
	Cluster uint32 // blocks of a cluster, where the kernel does not say; 0: 1
	Shared  uint32 // dynamic shared memory, bytes
	Early   bool   // may start before the kernel in front of it has finished: it waits itself
	Params  unsafe.Pointer
}

func stream(s cu.Stream) C.CUstream       { return *(*C.CUstream)(unsafe.Pointer(&s)) }
func function(f cu.Function) C.CUfunction { return *(*C.CUfunction)(unsafe.Pointer(&f)) }

// Do launches the kernel on a stream; it is captured when the stream is.
func (l *Launch) Do(s cu.Stream) error {
	dims := [4]C.uint{C.uint(l.Grid[0]), C.uint(l.Grid[1]), C.uint(l.Grid[2]), C.uint(l.Threads)}
	early := C.int(0)
	if l.Early {
		early = 1
	}
	return result(C.glmbatch_launch(function(l.Func), &dims[0], C.uint(l.Cluster), C.uint(l.Shared), stream(s), early,
		l.Params))
}

// MaxShared allows a function that much dynamic shared memory a block.
func MaxShared(f cu.Function, bytes int) error {
	return result(C.x_attribute(function(f), C.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, C.int(bytes)))
}

// LargeClusters allows a function clusters of more than eight blocks.
func LargeClusters(f cu.Function) error {
	return result(C.x_attribute(function(f), C.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1))
}

// PreferShared gives a function's multiprocessor as much shared memory as it can have.
// A kernel cannot start beside one that wants another amount.
func PreferShared(f cu.Function) error {
	return result(C.x_attribute(function(f), C.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 100))
}

// Graph is a captured and instantiated list of launches.
type Graph struct {
	exec  C.CUgraphExec
	Nodes int
}

// Capture records what f launches on s as a graph, without running it.
func Capture(s cu.Stream, f func() error) (*Graph, error) {
	if err := result(C.x_begin(stream(s))); err != nil {
		return nil, fmt.Errorf("begin capture: %w", err)
	}
	err := f()
	var g C.CUgraph
	if e := result(C.x_end(stream(s), &g)); err == nil && e != nil {
		err = fmt.Errorf("end capture: %w", e)
	}
	if err != nil {
		return nil, err
	}
	defer C.x_graph_destroy(g)
	var n C.size_t
	C.x_graph_nodes(g, &n)
	var x C.CUgraphExec
	if err := result(C.x_instantiate(&x, g)); err != nil {
		return nil, fmt.Errorf("instantiate a graph of %d nodes: %w", n, err)
	}
	if err := result(C.x_upload(x, stream(s))); err != nil {
		C.x_exec_destroy(x)
		return nil, fmt.Errorf("upload a graph of %d nodes: %w", n, err)
	}
	return &Graph{exec: x, Nodes: int(n)}, nil // the upload is in order with its launches
}

func (g *Graph) Launch(s cu.Stream) error { return result(C.x_graph_launch(g.exec, stream(s))) }
func (g *Graph) Close() error             { return result(C.x_exec_destroy(g.exec)) }

// Pinned returns page-locked host memory; free it with FreePinned.
func Pinned(bytes int) ([]byte, error) {
	var p unsafe.Pointer
	if err := result(C.x_host_alloc(&p, C.size_t(bytes))); err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(p), bytes), nil
}

func FreePinned(b []byte) error {
	if b == nil {
		return nil
	}
	return result(C.x_host_free(unsafe.Pointer(unsafe.SliceData(b))))
}

// ToDevice, ToHost, Copy and Set are asynchronous when host memory is pinned.
func ToDevice(dst uintptr, src []byte, s cu.Stream) error {
	if len(src) == 0 {
		return nil
	}
	return result(C.x_to_device(C.CUdeviceptr(dst), unsafe.Pointer(&src[0]), C.size_t(len(src)), stream(s)))
}

func ToHost(dst []byte, src uintptr, s cu.Stream) error {
	if len(dst) == 0 {
		return nil
	}
	return result(C.x_to_host(unsafe.Pointer(&dst[0]), C.CUdeviceptr(src), C.size_t(len(dst)), stream(s)))
}

func Set(dst uintptr, v byte, bytes int64, s cu.Stream) error {
	return result(C.x_set(C.CUdeviceptr(dst), C.uchar(v), C.size_t(bytes), stream(s)))
}

// Arrived is nil when what stands before the event in its stream is done,
// NotReady while it is not.
func Arrived(e cu.Event) error {
	return result(C.x_arrived(*(*C.CUevent)(unsafe.Pointer(&e))))
}
func Sync(s cu.Stream) error { return result(C.x_sync(stream(s))) }

package cpu

import (
	"unsafe"

	"glmbatch/kernels"
)

// Buffers are bytes; kernels see them as arrays of 4-byte values and of the
// sampling structs. This file alone reinterprets memory. Every view is checked
// for alignment and bounds by the frame before it is made.

func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// aligned reports whether b can be seen as values of n bytes each.
func aligned(b []byte, n uintptr) bool { return address(b)%n == 0 }

func floats(b []byte) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}

func ints(b []byte) []int32 {
	return unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}

const (
	paramBytes   = int(unsafe.Sizeof(kernels.SampleParams{}))
	entryBytes   = int(unsafe.Sizeof(kernels.Entry{}))
	sampledBytes = int(unsafe.Sizeof(kernels.Sampled{}))
)

func params(b []byte) []kernels.SampleParams {
	return unsafe.Slice((*kernels.SampleParams)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/paramBytes)
}

func sampled(b []byte) []kernels.Sampled {
	return unsafe.Slice((*kernels.Sampled)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/sampledBytes)
}

func entries(b []byte) []kernels.Entry {
	return unsafe.Slice((*kernels.Entry)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/entryBytes)
}

func counts(b []byte) []uint16 {
	return unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/2)
}

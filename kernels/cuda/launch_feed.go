//go:build cuda

package cuda

import (
	"unsafe"

	"glmbatch/kernels"
)

func feed(d *device, c *kernels.Call, at uintptr) error {
	a := feedP{last: d.ptr(c.Args[0]), from: d.ptr(c.Args[1]), rows: d.ptr(c.Args[2]), seq: d.ptr(c.Args[5]), pages: d.ptr(c.Args[7]),
		tokens: d.ptr(c.Args[3]), pos: d.ptr(c.Args[4]), slots: d.ptr(c.Args[6]), params: d.ptr(c.Args[8]), seen: d.ptr(c.Args[9]), at: at,
		m: c.Dims.M, n: c.Dims.N, pagesLd: c.Args[7].Pitch / 4, seenBytes: c.Args[9].Pitch}
	if a.seenBytes == 0 {
		a.seenBytes = (c.Dims.N + 63) / 64 * 8
	}
	return d.do("feed", [3]uint32{ceil(a.m, 128), 1, 1}, 128, 0, unsafe.Pointer(&a))
}

package cpu_test

import (
	"encoding/binary"
	"fmt"
	"log"
	"math"

	"glmbatch/kernels"
	"glmbatch/kernels/cpu"
)

// A device runs lists of calls on buffers.
func Example() {
	devices, err := cpu.Open(1, cpu.Options{Threads: 1})
	if err != nil {
		log.Fatal(err)
	}
	d := devices[0]
	defer d.Close()
	gateUp, err := d.Alloc(4*4, kernels.Sharded)
	if err != nil {
		log.Fatal(err)
	}
	y, err := d.Alloc(2*4, kernels.Sharded)
	if err != nil {
		log.Fatal(err)
	}
	var in []byte
	for _, x := range []float32{0, 1, 10, 20} { // the gates, then the ups
		in = binary.LittleEndian.AppendUint32(in, math.Float32bits(x))
	}
	if err := d.Upload(gateUp, in); err != nil {
		log.Fatal(err)
	}
	calls := []kernels.Call{{Kernel: "silu_mul", Layer: -1, Dims: kernels.Dims{M: 1, N: 2},
		Args: []kernels.Buffer{gateUp, y}}}
	if err := d.Start(calls, nil, kernels.Fetch{}); err != nil {
		log.Fatal(err)
	}
	if err := d.Wait(); err != nil {
		log.Fatal(err)
	}
	out := make([]byte, 8)
	if err := d.Download(out, y); err != nil {
		log.Fatal(err)
	}
	for i := range 2 {
		fmt.Printf("%.3f ", math.Float32frombits(binary.LittleEndian.Uint32(out[4*i:])))
	}
	// Output:
	// 0.000 14.621
}

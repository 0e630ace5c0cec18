package nvfp4_test

import (
	"fmt"

	"glmbatch/kernels/nvfp4"
)

// A row of 16 values is a block: half a byte each, one scale.
func Example() {
	w := []float32{0, 1, 2, 3, 4, 5, 6, 7, 0, -1, -2, -3, -4, -5, -6, -7}
	packed, scales, global := nvfp4.Quantize(w, 1, len(w))
	again := make([]float32, len(w))
	nvfp4.Dequantize(again, packed, scales, global)
	fmt.Println(len(packed), len(scales))
	for _, x := range again[:8] {
		fmt.Printf("%.2f ", x)
	}
	// Output:
	// 8 1
	// 0.00 1.17 1.75 3.50 3.50 4.67 7.00 7.00
}

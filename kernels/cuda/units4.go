package cuda

//lint:file-ignore U1000 the tag cuda uses them

// units4 are matrix units that take 4-bit operands and their block scales.
type units4 uint8

const (
	no4     units4 = iota
	mma4           // mma.sync: src/fp4mma.cu
	tensor4        // tcgen05.mma: src/fp4tensor.cu
)

package simd

import "glmbatch/kernels"

// Rows are rows of float32 values for a product to read or write. Row i is
// Data[Index[i]*Stride:], or Data[i*Stride:] if Index is nil.
type Rows struct {
	Data   []float32
	Stride int
	Index  []int32
}

// offset is where row i begins in Data; it panics unless the row has n values.
func (r Rows) offset(i, n int) int {
	if r.Index != nil {
		i = int(r.Index[i])
	}
	return checked(len(r.Data), i*r.Stride, n)
}

// offsets sets at to where its first rows of n values begin, in bytes.
func (r Rows) offsets(at []int64, n int) {
	if r.Index == nil {
		checked(len(r.Data), (len(at)-1)*r.Stride, n) // the last, and so those before it
		for i := range at {
			at[i] = 4 * int64(i) * int64(r.Stride)
		}
		return
	}
	for i, row := range r.Index[:len(at)] {
		at[i] = 4 * int64(checked(len(r.Data), int(row)*r.Stride, n))
	}
}

// checked returns off, and panics unless [off, off+n) lies within size. Slicing
// would check the capacity only.
func checked(size, off, n int) int {
	if off < 0 || n < 0 || off > size-n {
		panic("simd: a row lies outside of its slice")
	}
	return off
}

// Scratch is the working memory of one thread. The zero value is ready; it
// grows to what the calls need and is then reused.
type Scratch struct {
	block  []float32 // decoded weights
	x, y   []int64   // byte offsets of rows
	edge   [maxTile * Lanes]float32
	edgeAt [maxTile]int64

	rows, q, p, o []float32 // attention: decoded entries, padded queries, weights, sums
	max, sum      []float32

	keys  []float32 // of an indexer's cache, decoded
	from  keysFrom  // where they are from
	slots []int32   // which they are
}

// keysFrom is what decoded keys follow from besides their slots.
type keysFrom struct {
	cache *byte
	f     kernels.Format
	dim   int
}

// Forget is called when what a cache holds may have changed.
func (s *Scratch) Forget() { s.from = keysFrom{} }

func grow[T any](s *[]T, n int) []T {
	if cap(*s) < n {
		*s = make([]T, n)
	}
	return (*s)[:n]
}

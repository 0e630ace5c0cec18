// Package simd holds the inner loops of the CPU device: products with packed
// weights, attention over cache entries and the arithmetic of single rows. All
// are pure functions of their arguments; threads belong to the caller, who
// gives each of them its own [Scratch].
//
// A [Weight] is a matrix [Rows, Cols] packed into panels of 16 output rows
// ([PackPanels]). A vector lane is an output row, activations are broadcast, and an
// output is one chain of float32 fused multiply-adds over the columns in their
// order. So an output's bits depend on its own row of x and row of the weight
// alone: not on m, the range of panels, the path taken (a matrix-vector stream
// or tiles over decoded blocks) or the number of threads. Sums over a row, in dot
// products, norms and softmax, have a fixed number of lanes. AVX2, AVX-512 and
// plain Go, which emulates the fused operations, all give the same bits.
//
// Packed layouts, for each panel:
//
//   - F32: 16 values a column, column after column.
//   - BF16: 16 dwords a pair of columns, the even column in the low half; an
//     odd last column is paired with zeros.
//   - FP8B: for 128 columns, or the rest, 16 float32 scales and then 16 E4M3 codes
//     a column. A value is the product rounded to BF16, so that outputs have the
//     bits of those with BF16 weights.
//   - FP4: for 16 columns 144 bytes: 16 E4M3 scales, then 16 dwords of columns
//     0..7 (byte i has column i in its low half and column 4+i in its high half)
//     and 16 dwords of columns 8..15. Global and Input stand in 64 bytes before
//     the first panel.
//
// FP4 weights sum 16 columns at a time, in a chain that begins at 0; the sum
// times the columns' scale is fused into the output's sum, and Global multiplies
// the finished one. [GemmA4] and [GemmA8] read activations that [QuantA4]
// or [QuantA8] made integers, and sum exact integer dot products of 16 columns,
// each times the two block scales, in the order of the columns.
//
// [Attend] and [IndexScores] read cache entries in the layouts that package
// kernels documents, in fixed chunks of the slot list: their sums follow from the
// list's order alone.
//
// The instruction set is chosen once, when the program starts ([Level]).
// Assembly cannot be preempted, but each piece of it ends within about 0.1 ms: all
// rows by 2 panels by 256 columns, or 4 panels of a matrix-vector product. Rows of x
// are read again for each panel, so a caller with many rows splits them into
// calls of some hundred, whose blocks of 256 columns stay in the second cache.
//
// Arguments are checked only as far as memory safety needs it: a slice that is
// too short panics, as an index out of range does.
package simd

// Package kerneltest is the one suite that every device passes.
//
// [Run] goes through all rows of the table and their examples. It makes valid
// inputs at random (an argument's name says what it means: pos, slots, pages,
// seq, experts, sel, rows, tokens, params, seen), runs the call on poisoned
// outputs and compares with a reference in float64 that is written here from
// the formulas. It also checks what holds for every kernel: the same bits
// twice, alone, in a batch and in another order, on strided views, and nothing
// written but the outputs. [Benchmark] times the same examples.
package kerneltest

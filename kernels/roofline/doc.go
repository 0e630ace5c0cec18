// Package roofline says how fast a machine could do a kernel's work at best.
//
// There are two things: a [Machine], named ([Named]) or measured ([Measure]), and
// [Machine.Bound], the least time that a cost can take on it. A bound counts the
// least bytes and operations of [kernels.Cost] against the machine's best rates;
// caches that hold a kernel's data can beat the memory rate, so a small kernel
// may be faster than its bound.
package roofline

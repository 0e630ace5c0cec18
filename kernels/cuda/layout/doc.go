// Package layout reads what the CUDA sources state about sizes, without a CUDA
// compiler: the values of their constants, and where the fields of their structs lie.
// Tests hold the numbers that Go has against them.
//
// [Read] reads a folder; [Source.Eval] is the value of an expression, [Source.Fields]
// the layout of a struct, both as the file would see them with what it includes.
//
// It knows the C++ that such statements are made of here: integers, operators, sizeof,
// constexpr variables and functions of one return, enums, templates with integer parameters,
// structs of data, arrays, pointers, unions and alignas; sizes are those of 64-bit GPUs.
// Both branches of an #if are read. A constant that a file has twice, as functions have
// their own, has no value.
package layout

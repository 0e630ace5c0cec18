package kernels

import "slices"

// What the rows of Table are written with.

func i64(v int32) int64 { return int64(v) }

func mRows(d Dims) int64 { return i64(d.M) }
func nCols(d Dims) int64 { return i64(d.N) }
func kCols(d Dims) int64 { return i64(d.K) }
func mn(d Dims) int64    { return i64(d.M) * i64(d.N) }
func mk(d Dims) int64    { return i64(d.M) * i64(d.K) }
func mTopK(d Dims) int64 { return i64(d.M) * i64(d.TopK) }
func kn(d Dims) int64    { return i64(d.K) * i64(d.N) }

func mRanks(d Dims) int64 { return i64(d.M) * max(1, i64(d.Ranks)) }

func in(name, typ string, n func(Dims) int64) Arg { return Arg{Name: name, Type: typ, Len: n} }
func out(name string, n func(Dims) int64) Arg     { return Arg{Name: name, Role: Out, Type: "f32", Len: n} }
func inout(name string, n func(Dims) int64) Arg {
	return Arg{Name: name, Role: InOut, Type: "f32", Len: n}
}

var (
	weight = Arg{Name: "w", Role: Weight, Type: "weight"}
	rope   = Arg{Name: "rope", Role: In, Type: "f32"} // [positions, Rope/2] pairs (cos, sin)
	// a row of page numbers for each sequence, all of them the cache's; its pitch is the row's
	pages = Arg{Name: "pages", Role: In, Type: "i32"}
)

// What a product's scalar exact asks for. 0 is the device's own way, which may round inputs to
// fewer bits than float32's 24: on GPUs to two BF16 terms, 16 bits.
const (
	// ExactInputs: inputs as they are. What the kernel's format rounds stays rounded.
	ExactInputs = 1
	// RoundedInputs: inputs rounded to BF16 first, to the nearest and ties to even, as engines that
	// compute in BF16 have them. Not for float32 weights, nor where the format rounds inputs itself.
	RoundedInputs = 2
)

var exact = []string{"exact"}

// rounded is a scalar that asks for queries that are rounded likewise: 1.
const rounded = "rounded"

// RoundsInputs reports whether a call is a product that rounds its inputs to BF16.
func (c *Call) RoundsInputs() bool {
	k := Lookup(c.Kernel)
	return k != nil && k.RoundsInputs(c.Scalars)
}

// RoundsInputs reports whether the kernel, with such scalars, rounds its inputs to BF16.
func (k *Kernel) RoundsInputs(scalars [4]float32) bool {
	asked := k.AsksExact() && scalars[0] == RoundedInputs
	if i := slices.Index(k.Scalars, rounded); i >= 0 {
		asked = scalars[i] != 0
	}
	return asked && k.Format != F32 && k.Inputs == ""
}

// RoundInputs sets the scalar that asks for it, if there is one.
func (k *Kernel) RoundInputs(scalars *[4]float32) {
	if i := slices.Index(k.Scalars, rounded); i >= 0 {
		scalars[i] = 1
	} else if k.AsksExact() {
		scalars[0] = RoundedInputs
	}
}

// AsksExact reports whether a kernel's first scalar says how a product takes its inputs.
func (k *Kernel) AsksExact() bool { return len(k.Scalars) > 0 && k.Scalars[0] == "exact" }

// one is a row for an operation that has no number format of its own, or one only.
func one(k Kernel) []Kernel {
	if k.Op == "" {
		k.Op = Op(k.Name)
	}
	return []Kernel{k}
}

// each is a row for each number format of weights or cache entries; of weights, with
// what inputs are rounded to.
func each(op Op, fs []Format, row func(Format) Kernel) []Kernel {
	var ks []Kernel
	for _, f := range fs {
		k := row(f)
		k.Op, k.Name = op, With(Name(op), f)
		k.Format, _, _ = numbers(f)
		k.Inputs = inputs[f]
		ks = append(ks, k)
	}
	return ks
}

func join(rows ...[]Kernel) []Kernel {
	var ks []Kernel
	for _, r := range rows {
		ks = append(ks, r...)
	}
	return ks
}

// inputs is what a kernel rounds its inputs to, by its number format.
var inputs = map[Format]Format{"fp4a4": FP4, "fp4a8": INT8}

// numbers splits a kernel's number format, "fp4a8" say, into the format of its
// weights, the pipe that multiplies and how far two devices may differ. 4- and
// 8-bit activations are rounded alike from the same input, so that only the
// order of sums is left.
func numbers(f Format) (Format, Pipe, float64) {
	switch f {
	case "fp4a4":
		return FP4, OnFP4, 3e-5
	case "fp4a8":
		return FP4, OnInt8, 3e-5
	}
	return f, OnMatrix, 1e-5
}

// productClass is the class of products with weights in a format.
func productClass(weights Format) Class {
	if weights == FP8B {
		return GemmFP8
	}
	return Class("gemm." + string(weights))
}

func format(f Format) string {
	switch f {
	case "fp4a4":
		return "NVFP4 (with 4-bit activations)"
	case "fp4a8":
		return "NVFP4 (with 8-bit activations)"
	case FP4:
		return "NVFP4"
	case FP8:
		return "FP8"
	case FP8B:
		return "FP8 (with scales for blocks)"
	case BF16:
		return "BF16"
	}
	return "float32"
}

// cacheDiff is half a step of the cache's number format where its steps are
// largest: 2^-8 of a power of two, 16 of E4M3's 448 and a little for its scale.
func cacheDiff(f Format) float64 {
	switch f {
	case BF16:
		return 1.0 / 256
	case FP8:
		return 1.0 / 27
	}
	return 1e-5
}

// product is the cost of count products [m,k] x [n,k]ᵀ.
func product(f Format, count, m, n, k int32) Cost {
	c, mm, nn, kk := i64(count), i64(m), i64(n), i64(k)
	return Cost{HBM: c * (WeightBytes(f, nn, kk) + 4*mm*(nn+kk)), FLOPs: 2 * c * mm * nn * kk}
}

// experts is the cost of the products of M·TopK rows with the experts they
// chose, as many of Groups as there can be.
func experts(f Format, d Dims, n, k int32, activations int64) Cost {
	rows := i64(d.M) * i64(d.TopK)
	return Cost{HBM: min(i64(d.Groups), rows)*WeightBytes(f, i64(n), i64(k)) + activations,
		FLOPs: 2 * rows * i64(n) * i64(k)}
}

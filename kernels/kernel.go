package kernels

import "fmt"

// Class groups kernels that cost for the same reason. Reports have one row a
// class. Kernels of glmbatch know theirs by construction; only traces of other
// engines have it guessed from names.
type Class string

// The classes of glmbatch's own kernels.
const (
	Embed     Class = "embed"
	Norm      Class = "norm"
	GemmF32   Class = "gemm.f32"
	GemmBF16  Class = "gemm.bf16"
	GemmFP8   Class = "gemm.fp8"
	GemmFP4   Class = "gemm.fp4"
	MoEF32    Class = "gemm.f32.moe"
	MoEBF16   Class = "gemm.bf16.moe"
	MoEFP8    Class = "gemm.fp8.moe"
	MoEFP4    Class = "gemm.fp4.moe"
	Route     Class = "moe.route"
	Attention Class = "attn"
	Indexer   Class = "attn.indexer"
	CacheIn   Class = "kv.write"
	CacheCast Class = "kv.cast" // a copy of cache entries to another format: never in a sound step
	Act       Class = "act"
	Copy      Class = "copy"
	Comm      Class = "comm"
	Sample    Class = "sample"
)

// Pipe is the unit whose peak bounds a kernel's FLOPs.
type Pipe string

const (
	OnVector Pipe = "vector" // scalar and SIMD units
	OnMatrix Pipe = "matrix" // BF16 matrix units, or the same SIMD units where there are none
	OnInt8   Pipe = "int8"
	OnFP4    Pipe = "fp4"
)

// Role says what a call does with an argument.
type Role uint8

const (
	In Role = iota
	Out
	InOut
	Weight // loaded by Device.Load
)

// Arg describes one argument of a kernel.
type Arg struct {
	Name string
	Role Role
	Type string             // "f32", "i32", a cache format, or "weight"
	Len  func(d Dims) int64 // values, dense; nil for weights and caches

	Optional bool // a call may have none
}

// Op is what a kernel does, whatever the number format.
type Op string

// Kernel is a row of [Table]: everything that readers of a step need to know
// of one kernel.
type Kernel struct {
	Name    Name   // Op, and the number format where there are several
	Op      Op     // operation
	Format  Format // of its weights or cache entries; "": it has neither
	Inputs  Format // that its inputs are rounded to, FP4 or INT8; "": they are not
	Class   Class
	Pipe    Pipe
	Args    []Arg
	Scalars []string // what Call.Scalars hold, in order
	Cost    func(d Dims) Cost
	// MaxDiff is the largest difference between two devices' outputs, relative
	// to the largest absolute value of the output. 0: the same bits.
	MaxDiff  float64
	Examples []Dims // shapes for tests and benchmarks
	Help     string // one line for the README and --help
}

var byName = func() map[Name]*Kernel {
	m := make(map[Name]*Kernel, len(Table))
	for i := range Table {
		if m[Table[i].Name] != nil {
			panic("kernels: two rows named " + string(Table[i].Name))
		}
		m[Table[i].Name] = &Table[i]
	}
	return m
}()

// Lookup returns the table's row of a kernel, or nil.
func Lookup(n Name) *Kernel { return byName[n] }

// With names the kernel that does what n does on weights or caches of format f.
func With(n Name, f Format) Name { return n + "_" + Name(f) }

// Cost returns the least work of the call on one rank. groups is the span's
// count of experts really touched; 0: unknown, all that the rows could touch.
func (c *Call) Cost(groups int32) Cost {
	k := Lookup(c.Kernel)
	if k == nil {
		return Cost{}
	}
	d := c.Dims
	if groups > 0 {
		d.Groups = groups
	}
	return k.Cost(d)
}

// Check reports whether the call fits its kernel's row: known, with the right
// number of arguments, each long enough for the dimensions.
func (c *Call) Check() error {
	k := Lookup(c.Kernel)
	if k == nil {
		return fmt.Errorf("%w: no kernel %q", ErrKernel, c.Kernel)
	}
	if len(c.Args) != len(k.Args) {
		return fmt.Errorf("%w: %s takes %d arguments, has %d", ErrKernel, c.Kernel, len(k.Args), len(c.Args))
	}
	for i, a := range k.Args {
		if a.Len == nil {
			continue
		}
		if n := a.Len(c.Dims) * 4; c.Args[i].Pitch == 0 && c.Args[i].Len < n {
			return fmt.Errorf("%w: argument %s of %s has %d bytes, needs %d", ErrKernel, a.Name, c.Kernel,
				c.Args[i].Len, n)
		}
	}
	return nil
}

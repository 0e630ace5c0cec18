package plan

import (
	"slices"

	"glmbatch/kernels"
)

// Variant is a way to launch an operation. Of an architecture's variants, and the portable
// ones behind them, a call takes the first that is for it.
type Variant struct {
	Name    string // of the kernel, for people: sources, what sets it apart
	Op      kernels.Op
	Formats []kernels.Format // of weights or cache entries; nil: any
	Why     string           // what was measured, or what it is for

	exact whose                           // products that are asked not to round their inputs
	When  func(b *builder, c *call) bool  // nil: always. What it works out for Build it leaves in the call
	Build func(b *builder, c *call) error // adds launches
}

// whose says which products a variant is for: those that may round their inputs, those
// that must not.
type whose uint8

const (
	rounding whose = iota
	exactly
	either
)

// choose returns the variant of a call; nil: there is none.
func (b *builder) choose(c *call) *Variant {
	for _, vs := range [][]Variant{foremost, b.t.Variants, portable} {
		for i := range vs {
			if v := &vs[i]; v.takes(c) && (v.When == nil || v.When(b, c)) {
				return v
			}
		}
	}
	return nil
}

func (v *Variant) takes(c *call) bool {
	return v.Op == c.kernel.Op && (v.Formats == nil || slices.Contains(v.Formats, c.kernel.Format)) &&
		(v.exact == either || (v.exact == exactly) == c.exact)
}

// call is a call of the list with what its launches need of it.
type call struct {
	*kernels.Call
	kernel  *kernels.Kernel
	at      uintptr // of its stamps
	exact   bool    // a product that is asked not to round its inputs
	rounded uint32  // 1: it is asked to round them to BF16
	w       *Weight // nil: it has none
	weight  uintptr

	// What the operation's kernels are given, as far as it does not depend on the variant.
	gemm   gemmP // products
	slices int32 // blocks that share an output tile's k, in the order of sums: see sharesOf
	moe    moeP  // experts
	attend attendP
	reach  int32 // positions that a row can attend to
	index  indexP

	cluster    clusterGemmP   // left by When
	persistent persistentOneP // likewise
	wgmma      wgmmaP         // likewise
	splitK     splitKWay      // likewise
	tiled      tiledWay       // likewise
}

// resolve looks up what a call names, and notes what it writes. It returns nil for a call
// without rows.
func (b *builder) resolve(i int, k *kernels.Call) (*call, error) {
	c := &call{Call: k, kernel: kernels.Lookup(k.Kernel), at: b.stamp(i)}
	if k.Dims.M == 0 && k.Dims.Slots == 0 {
		return nil, nil
	}
	b.turn++
	for j, a := range c.kernel.Args {
		x := k.Args[j]
		switch {
		case a.Role == kernels.Weight:
			c.w, c.weight = b.m.Buffers[x.Index-1].Weight, b.m.Buffers[x.Index-1].Ptr
		case a.Role != kernels.In && x.Index != 0:
			b.panels.forget(b.ptr(x), b.ptr(x)+uintptr(x.Len))
			b.fresh.writes = append(b.fresh.writes, write{b.ptr(x), b.ptr(x) + uintptr(x.Len)})
		}
	}
	// Products of float32 weights never round; 4-bit activations are exact.
	c.exact = asksExact(k) && c.w.Format != kernels.F32 && c.w.Units4 == No4
	if k.RoundsInputs() {
		c.rounded = 1
	}
	if f := resolvers[c.kernel.Op]; f != nil {
		if err := f(b, c); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// asksExact reports whether a call is a product that is asked not to round its inputs.
func asksExact(c *kernels.Call) bool {
	return kernels.Lookup(c.Kernel).AsksExact() && c.Scalars[0] != 0 && c.Scalars[0] != kernels.RoundedInputs
}

// resolvers fill in what an operation's kernels are given.
var resolvers = map[kernels.Op]func(*builder, *call) error{
	"gemm": resolveProduct, "q_absorb": resolveProduct, "v_up": resolveProduct,
	"moe_up": resolveExperts, "moe_down": resolveExperts,
	"mla_attend": resolveAttend, "index_logits": resolveLogits,
}

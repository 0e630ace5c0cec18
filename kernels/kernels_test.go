package kernels

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// What caches take for GLM-5's sizes: 512 latent and 64 rotary values, indexer
// keys of 128.
func TestCacheEntries(t *testing.T) {
	for _, c := range []struct {
		format        Format
		latent, index int
	}{{F32, 2304, 512}, {BF16, 1152, 256}, {FP8, 656, 132}} {
		if l, i := LatentEntry(c.format, 512, 64), IndexEntry(c.format, 128); l != c.latent || i != c.index {
			t.Errorf("%s: %d and %d bytes, want %d and %d", c.format, l, i, c.latent, c.index)
		}
	}
	if n := LatentEntry(FP8, 130, 2); n != 130+2*4+2*2 {
		t.Errorf("a latent of 130 has %d bytes: the rest has a scale of its own", n)
	}
	if n := WeightBytes(FP4, 3, 32); n != 3*32/2+3*2 {
		t.Errorf("an NVFP4 weight [3, 32] has %d bytes", n)
	}
}

// Every row is complete: readers of the table need not ask.
func TestTable(t *testing.T) {
	for i := range Table {
		k := &Table[i]
		if k.Name == "" || k.Class == "" || k.Pipe == "" || k.Help == "" || strings.Contains(k.Help, "\n") ||
			len(k.Args) == 0 || k.Cost == nil || len(k.Examples) == 0 {
			t.Errorf("row %d, %s, is not complete", i, k.Name)
			continue
		}
		if Lookup(k.Name) != k {
			t.Errorf("%s is not found by its name", k.Name)
		}
		if len(k.Scalars) > len(Call{}.Scalars) {
			t.Errorf("%s has %d scalars", k.Name, len(k.Scalars))
		}
		if !slices.ContainsFunc(k.Args, func(a Arg) bool { return a.Role == Out || a.Role == InOut }) {
			t.Errorf("%s has no output", k.Name)
		}
		for _, d := range k.Examples {
			if k.Class == Comm {
				d.Ranks = 2
			}
			c := k.Cost(d)
			if c.HBM <= 0 || c.FLOPs < 0 || (c.Wire > 0) != (k.Class == Comm) {
				t.Errorf("%s %+v costs %+v", k.Name, d, c)
			}
		}
	}
	if Lookup("no_such_kernel") != nil {
		t.Error("a kernel that the table lacks was found")
	}
}

// What a call costs follows its dimensions, and the experts that it touched.
func TestCost(t *testing.T) {
	gemm := Call{Kernel: "gemm_bf16", Dims: Dims{M: 2, N: 8, K: 16}}
	if got, want := gemm.Cost(0), (Cost{HBM: 2*8*16 + 4*2*(8+16), FLOPs: 2 * 2 * 8 * 16}); got != want {
		t.Errorf("gemm costs %+v, want %+v", got, want)
	}
	moe := Call{Kernel: "moe_down_f32", Dims: Dims{M: 4, N: 8, K: 16, Groups: 64, TopK: 8}}
	most, three := moe.Cost(0), moe.Cost(3)
	if most.HBM-three.HBM != (32-3)*4*8*16 || most.FLOPs != three.FLOPs {
		t.Errorf("all that 32 rows could touch costs %+v, three experts %+v", most, three)
	}
	reduce := Call{Kernel: "all_reduce_norm", Dims: Dims{M: 1, N: 256, Ranks: 8}}
	if w := reduce.Cost(0).Wire; w != 4*256*2*7/8 {
		t.Errorf("reducing 256 values over 8 ranks moves %d bytes", w)
	}
	if c := (&Call{Kernel: "no_such_kernel"}).Cost(0); c != (Cost{}) {
		t.Errorf("an unknown kernel costs %+v", c)
	}
}

func TestCheck(t *testing.T) {
	good := Call{Kernel: "rms_norm", Dims: Dims{M: 2, K: 8},
		Args: []Buffer{{Index: 1, Len: 64}, {Index: 2, Len: 32}, {Index: 3, Len: 64}}}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for what, edit := range map[string]func(*Call){
		"unknown":       func(c *Call) { c.Kernel = "no_such_kernel" },
		"too few":       func(c *Call) { c.Args = c.Args[:2] },
		"w has 31":      func(c *Call) { c.Args[1].Len-- },
		"y has 0 bytes": func(c *Call) { c.Args[2] = Buffer{} },
	} {
		c := good
		c.Args = slices.Clone(good.Args)
		edit(&c)
		if err := c.Check(); !errors.Is(err, ErrKernel) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestBufferViews(t *testing.T) {
	b := Buffer{Index: 3, Offset: 100, Len: 400}
	if got, want := b.Slice(40, 80), (Buffer{Index: 3, Offset: 140, Len: 80}); got != want {
		t.Errorf("Slice is %+v, want %+v", got, want)
	}
	// Columns 2 to 4 of rows of 10: the last row's view ends before the buffer does.
	if got, want := b.Columns(2, 3, 10), (Buffer{Index: 3, Pitch: 40, Offset: 108, Len: 392}); got != want {
		t.Errorf("Columns is %+v, want %+v", got, want)
	}
}

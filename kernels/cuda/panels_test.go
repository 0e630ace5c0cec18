//go:build cuda

package cuda

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda/driver"
	"glmbatch/kernels/cuda/plan"
	"glmbatch/kernels/ranks"
)

// What norms and sums over ranks leave as panels are the rows, in two BF16 parts.
func TestPanelsAreTheRows(t *testing.T) {
	if err := driver.Status(); err != nil {
		t.Skip(err)
	}
	held := hold(t)
	if !held[0].(*device).target.Panels {
		t.Skip("the GPU has no use for panels")
	}
	const n = 6144
	for _, c := range []struct {
		kernel kernels.Name
		m      int
		ranks  int
		way    Collective
	}{{"rms_norm", 70, 1, ""}, {"add_norm", 70, 1, ""}, {"rms_norm", 300, 1, ""}, {"add_norm", 300, 1, ""},
		{"all_reduce_norm", 70, 2, OneShot}, {"all_reduce_norm", 70, 2, TwoShot}} {
		t.Run(fmt.Sprintf("%s/%d%s", c.kernel, c.m, c.way), func(t *testing.T) {
			m := c.m
			ds, err := Open(c.ranks, Options{Collective: c.way, like: held})
			if err != nil {
				t.Fatal(err)
			}
			g, err := ranks.New(ds, ranks.Options{Lock: true})
			if err != nil {
				t.Fatal(err)
			}
			defer g.Close()
			rng := rand.New(rand.NewPCG(1, 2))
			call := kernels.Call{Kernel: c.kernel, Dims: kernels.Dims{M: int32(m), N: n, Ranks: int32(c.ranks)}}
			if c.kernel == "rms_norm" {
				call.Dims = kernels.Dims{M: int32(m), K: n}
			}
			for range kernels.Lookup(c.kernel).Args {
				b := make([]byte, 0, 4*m*n)
				for range m * n {
					b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(rng.NormFloat64())))
				}
				buf, err := g.Alloc(int64(4*m*n), kernels.Sharded)
				if err == nil {
					err = g.Upload(buf, b)
				}
				if err != nil {
					t.Fatal(err)
				}
				call.Args = append(call.Args, buf)
			}
			if err := g.Run([]kernels.Call{call}, nil); err != nil {
				t.Fatal(err)
			}
			y := call.Args[len(call.Args)-1]
			for r := range c.ranks {
				rows := make([]byte, 4*m*n)
				if err := g.Download(r, rows, y); err != nil {
					t.Fatal(err)
				}
				checkPanels(t, ds[r].(*device), call, m, n, rows)
			}
		})
	}
}

// checkPanels compares the panels that a call leaves with its rows.
func checkPanels(t *testing.T, d *device, call kernels.Call, m, n int, rows []byte) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p, err := plan.Each([]kernels.Call{call}, &d.target, &d.memory.Memory)
	if err = errors.Join(err, d.use()); err != nil {
		t.Fatal(err)
	}
	from := p.Launches[len(p.Launches)-1].Panels()
	if from == 0 {
		t.Fatalf("rank %d has left no panels", d.rank)
	}
	const panel = 64 * 128
	got := make([]byte, (m+63)/64*n/64*2*panel)
	if err := driver.ToHost(got, from, d.stream); err != nil {
		t.Fatal(err)
	}
	if err := driver.Sync(d.stream); err != nil {
		t.Fatal(err)
	}
	nearest := func(v float32) (uint16, float32) { // BF16, ties to even
		u := math.Float32bits(v)
		u = (u + 0x7fff + u>>16&1) >> 16
		return uint16(u), math.Float32frombits(u << 16)
	}
	for i := range m * n {
		row, col := i/n, i%n
		v := math.Float32frombits(binary.LittleEndian.Uint32(rows[4*i:]))
		hi, most := nearest(v)
		lo, _ := nearest(v - most)
		at := (row/64*(n/64)+col/64)*2*panel + row%64*128 + (col%64/8^row%8)*16 + col%8*2
		for part, want := range []uint16{hi, lo} {
			if have := binary.LittleEndian.Uint16(got[at+part*panel:]); have != want {
				t.Fatalf("rank %d, row %d, column %d, part %d: %#x, want %#x", d.rank, row, col, part, have, want)
			}
		}
	}
}

// A product reads what a norm has left as panels, all rows or some, with the bits that
// it has from the rows.
func TestPanelsAreRead(t *testing.T) {
	if err := driver.Status(); err != nil {
		t.Skip(err)
	}
	ds, err := Open(1, Options{like: hold(t)})
	if err != nil {
		t.Fatal(err)
	}
	g, err := ranks.New(ds, ranks.Options{Lock: true})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	const m, n, k, first, some = 600, 2000, 2048, 128, 400 // tiles of 128 rows, and of 64
	rng := rand.New(rand.NewPCG(1, 2))
	noise := func(values, size int) []byte { // of float32 or BF16
		b := make([]byte, 0, values*size)
		for range values {
			u := math.Float32bits(float32(rng.NormFloat64()))
			if size == 2 {
				b = binary.LittleEndian.AppendUint16(b, uint16(u>>16))
			} else {
				b = binary.LittleEndian.AppendUint32(b, u)
			}
		}
		return b
	}
	weights := noise(n*k, 2)
	buffer := func(b []byte, size int) kernels.Buffer {
		buf, err := g.Alloc(int64(size), kernels.Sharded)
		if err == nil && b != nil {
			err = g.Upload(buf, b)
		}
		if err != nil {
			t.Fatal(err)
		}
		return buf
	}
	w, err := g.Load(kernels.Sharded, func(int) kernels.Weights {
		return kernels.Weights{Name: "w", Format: kernels.BF16, Count: 1, Rows: n, Cols: k,
			Read: func(int, kernels.Alloc) (kernels.Matrix, error) {
				return kernels.Matrix{Data: weights, Global: 1}, nil
			}}
	})
	if err != nil {
		t.Fatal(err)
	}
	x, norm, y := buffer(noise(m*k, 4), 4*m*k), buffer(noise(k, 4), 4*k), buffer(nil, 4*m*k)
	product := func(y kernels.Buffer, m int) (kernels.Call, kernels.Buffer) {
		out := buffer(nil, 4*m*n)
		return kernels.Call{Kernel: "gemm_bf16", Dims: kernels.Dims{M: int32(m), N: n, K: k},
			Args: []kernels.Buffer{w, y, out}}, out
	}
	part := y
	part.Offset, part.Len = part.Offset+4*first*k, 4*some*k
	all, a := product(y, m)
	few, b := product(part, some)
	alone, c := product(y, m)
	for _, calls := range [][]kernels.Call{
		{{Kernel: "rms_norm", Dims: kernels.Dims{M: m, K: k}, Args: []kernels.Buffer{x, norm, y},
			Scalars: [4]float32{1e-5}},
			all, few},
		{alone},
	} {
		if err := g.Run(calls, nil); err != nil {
			t.Fatal(err)
		}
	}
	values := func(out kernels.Buffer) []byte {
		b := make([]byte, out.Len)
		if err := g.Download(0, b, out); err != nil {
			t.Fatal(err)
		}
		return b
	}
	want := values(c)
	if !bytes.Equal(values(a), want) {
		t.Error("all rows have other bits by panels")
	}
	if !bytes.Equal(values(b), want[4*first*n:4*(first+some)*n]) {
		t.Error("some rows have other bits by panels")
	}
}

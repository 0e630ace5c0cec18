package cpu

import (
	"encoding/binary"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"glmbatch/kernels"
	"glmbatch/kernels/ranks"
)

func group(t *testing.T, n int, o Options) *ranks.Group {
	t.Helper()
	ds, err := Open(n, o)
	if err != nil {
		t.Fatal(err)
	}
	g, err := ranks.New(ds, ranks.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

func alloc(t *testing.T, g *ranks.Group, n int64, s kernels.Sharing) kernels.Buffer {
	t.Helper()
	b, err := g.Alloc(n, s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func int32s(v ...int32) []byte {
	var b []byte
	for _, n := range v {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	return b
}

func upload(t *testing.T, g *ranks.Group, v ...int32) kernels.Buffer {
	t.Helper()
	b := alloc(t, g, int64(4*len(v)), kernels.Replicated)
	if err := g.Upload(b, int32s(v...)); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestOptions(t *testing.T) {
	if err := (Options{Threads: -1, Memory: -1}).Validate(); err == nil || !strings.Contains(err.Error(), "Threads") ||
		!strings.Contains(err.Error(), "Memory") {
		t.Errorf("Validate: %v, want both faults", err)
	}
	for _, n := range []int{-1, 0, MaxRanks + 1} {
		if _, err := Open(n, Options{}); err == nil {
			t.Errorf("Open(%d) succeeded", n)
		}
	}
}

// TestReplicatedOnce: replicated weights are read once and count once.
func TestReplicatedOnce(t *testing.T) {
	g := group(t, 4, Options{Memory: 1 << 16})
	var reads atomic.Int32
	load := func(s kernels.Sharing) {
		t.Helper()
		if _, err := g.Load(s, func(int) kernels.Weights {
			return kernels.Weights{Name: "w", Format: kernels.F32, Count: 1, Rows: 16, Cols: 16,
				Read: func(int, kernels.Alloc) (kernels.Matrix, error) {
					reads.Add(1)
					return kernels.Matrix{Data: make([]byte, 1024)}, nil
				}}
		}); err != nil {
			t.Fatal(err)
		}
	}
	if load(kernels.Replicated); reads.Load() != 1 {
		t.Errorf("replicated weights were read %d times", reads.Load())
	}
	if load(kernels.Sharded); reads.Load() != 5 {
		t.Errorf("weights of 4 ranks were read %d times", reads.Load()-1)
	}
	alloc(t, g, 1<<15, kernels.Replicated)
	if _, err := g.Alloc(1<<15, kernels.Sharded); !errors.Is(err, kernels.ErrMemory) {
		t.Errorf("over the limit: %v, want %v", err, kernels.ErrMemory)
	}
	alloc(t, g, 1<<12, kernels.Replicated) // the failure cost nothing
}

func TestReadErrors(t *testing.T) {
	g := group(t, 1, Options{})
	broken := errors.New("disk on fire")
	for _, w := range []kernels.Weights{
		{Read: func(int, kernels.Alloc) (kernels.Matrix, error) {
			return kernels.Matrix{}, broken
		}, Count: 1, Rows: 2, Cols: 2, Format: kernels.F32},
		{Read: func(int, kernels.Alloc) (kernels.Matrix, error) {
			return kernels.Matrix{}, nil
		}, Count: 0, Rows: 2, Cols: 2, Format: kernels.F32},
		{Read: func(int, kernels.Alloc) (kernels.Matrix, error) {
			return kernels.Matrix{}, nil
		}, Count: 1, Rows: 2, Cols: 2, Format: "int3"},
		{Read: func(int, kernels.Alloc) (kernels.Matrix, error) {
			return kernels.Matrix{}, nil
		}, Count: 1, Rows: 2, Cols: 2, Format: kernels.FP4},
		{Read: func(int, kernels.Alloc) (kernels.Matrix, error) {
			return kernels.Matrix{}, nil
		}, Count: 1, Rows: 2, Cols: 2, Format: kernels.FP8},
		{Read: func(int, kernels.Alloc) (kernels.Matrix, error) {
			return kernels.Matrix{}, nil
		}, Count: 1, Rows: 2, Cols: 2, Format: kernels.FP8, Use: kernels.Gather},
		{Read: func(int, kernels.Alloc) (kernels.Matrix, error) {
			return kernels.Matrix{}, nil
		}, Count: 1, Rows: 2, Cols: 2, Format: kernels.BF16, Use: kernels.Gather},
		{Read: func(int, kernels.Alloc) (kernels.Matrix, error) {
			return kernels.Matrix{}, nil
		}, Count: maxDim, Rows: maxDim, Cols: maxDim, Format: kernels.F32},
		{Count: 1, Rows: 2, Cols: 2, Format: kernels.F32},
	} {
		w.Name = "model.some.weight"
		_, err := g.Load(kernels.Sharded, func(int) kernels.Weights { return w })
		if err == nil || !strings.Contains(err.Error(), w.Name) {
			t.Errorf("%+v: error %v, want one that names the weight", w, err)
		}
		if w.Count == 1 && errors.Is(err, broken) != (w.Format == kernels.F32 && w.Read != nil) {
			t.Errorf("%+v: %v", w, err)
		}
	}
}

// TestHostileBatches: contents of a batch that point outside end the run.
func TestHostileBatches(t *testing.T) {
	g := group(t, 1, Options{})
	const rope, latent = 16, 64
	x := alloc(t, g, 1<<16, kernels.Sharded)
	angles := alloc(t, g, 10*rope*4, kernels.Sharded)
	cache := alloc(t, g, int64(2*kernels.PageTokens*kernels.LatentEntry(kernels.F32, latent, rope)), kernels.Sharded)
	table, err := g.Load(kernels.Sharded, func(int) kernels.Weights {
		return kernels.Weights{Name: "t", Format: kernels.F32, Use: kernels.Gather, Count: 1, Rows: 8, Cols: 4,
			Read: func(int, kernels.Alloc) (kernels.Matrix, error) {
				return kernels.Matrix{Data: make([]byte, 128)}, nil
			}}
	})
	if err != nil {
		t.Fatal(err)
	}
	experts, err := g.Load(kernels.Sharded, func(int) kernels.Weights {
		return kernels.Weights{Name: "e", Format: kernels.F32, Count: 4, Rows: 32, Cols: 16,
			Read: func(int, kernels.Alloc) (kernels.Matrix, error) {
				return kernels.Matrix{Data: make([]byte, 4*32*16)}, nil
			}}
	})
	if err != nil {
		t.Fatal(err)
	}
	zero, pages := upload(t, g, 0), upload(t, g, 0, 1)
	write := func(pos, slot kernels.Buffer) kernels.Call {
		return kernels.Call{Kernel: "latent_write_f32", Dims: kernels.Dims{M: 1, K: latent, Rope: rope},
			Args: []kernels.Buffer{x, x, angles, pos, slot, cache}}
	}
	attend := func(pages, seq, pos, sel kernels.Buffer, topK int32) kernels.Call {
		return kernels.Call{Kernel: "mla_attend_f32",
			Dims: kernels.Dims{M: 1, Heads: 1, K: latent, Rope: rope, TopK: topK},
			Args: []kernels.Buffer{x, cache, pages, seq, pos, sel, x.Slice(1<<15, 1<<15)}}
	}
	embed := func(token int32) kernels.Call {
		return kernels.Call{Kernel: "embed_f32", Dims: kernels.Dims{M: 1, N: 4},
			Args: []kernels.Buffer{table, upload(t, g, token), x}}
	}
	up := func(expert int32) kernels.Call {
		return kernels.Call{Kernel: "moe_up_f32", Dims: kernels.Dims{M: 1, N: 16, K: 16, Groups: 4, TopK: 1},
			Args: []kernels.Buffer{experts, x, upload(t, g, expert), x.Slice(1<<15, 1<<15)}}
	}
	none := kernels.Buffer{}
	for name, c := range map[string]struct {
		call kernels.Call
		ok   bool
	}{
		"a slot":                     {write(zero, upload(t, g, 127)), true},
		"a slot past the cache":      {write(zero, upload(t, g, 128)), false},
		"a negative slot":            {write(zero, upload(t, g, -1)), false},
		"a position":                 {write(upload(t, g, 9), zero), true},
		"a position past the angles": {write(upload(t, g, 10), zero), false},
		"a negative position":        {write(upload(t, g, -1), zero), false},
		"pages":                      {attend(pages, zero, upload(t, g, 127), none, 0), true},
		"a position past the pages":  {attend(pages, zero, upload(t, g, 128), none, 0), false},
		"a page past the cache":      {attend(upload(t, g, 0, 2), zero, upload(t, g, 64), none, 0), false},
		"a negative page":            {attend(upload(t, g, -1, 0), zero, zero, none, 0), false},
		"a sequence without pages":   {attend(pages, upload(t, g, 1), zero, none, 0), false},
		"the largest position":       {attend(pages, zero, upload(t, g, 1<<31-1), none, 0), false},
		"a selection":                {attend(pages, zero, upload(t, g, 70), upload(t, g, 70, -1), 2), true},
		"a selection past the row":   {attend(pages, zero, upload(t, g, 70), upload(t, g, 0, 71), 2), false},
		"no selection":               {attend(pages, zero, upload(t, g, 70), none, 2), false},
		"a token":                    {embed(7), true},
		"a token past the table":     {embed(8), false},
		"a negative token":           {embed(-1), false},
		"an expert":                  {up(3), true},
		"an expert too many":         {up(4), false},
		"a negative expert":          {up(-1), false},
		"a table as a factor": {kernels.Call{Kernel: "gemm_f32", Dims: kernels.Dims{M: 1, N: 8, K: 4},
			Args: []kernels.Buffer{table, x, x.Slice(1<<15, 1<<15)}}, false},
		"negative dimensions": {kernels.Call{Kernel: "rms_norm", Dims: kernels.Dims{M: -1, K: -4},
			Args: []kernels.Buffer{x, x, x}}, false},
	} {
		err := g.Run([]kernels.Call{c.call}, nil)
		if c.ok && err != nil || !c.ok && !errors.Is(err, kernels.ErrKernel) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestReplicatedCalls: what a call says of itself must fit its buffers.
func TestReplicatedCalls(t *testing.T) {
	g := group(t, 2, Options{})
	own, shared := alloc(t, g, 64, kernels.Sharded), alloc(t, g, 64, kernels.Replicated)
	for _, c := range []struct {
		replicated bool
		x, y       kernels.Buffer
		ok         bool
	}{
		{true, shared, shared, true}, {false, own, own, true}, {false, shared, own, true},
		{false, own, shared, false}, {true, own, shared, false}, {true, shared, own, false},
	} {
		err := g.Run([]kernels.Call{{Kernel: "silu_mul", Replicated: c.replicated, Dims: kernels.Dims{M: 1, N: 4},
			Args: []kernels.Buffer{c.x, c.y}}}, nil)
		if c.ok != (err == nil) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestLockstep: ranks that bring different lists, or none because they have
// closed, get an error and nobody waits for ever.
func TestLockstep(t *testing.T) {
	ds, err := Open(2, Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	norm := []kernels.Call{{Kernel: "no_such"}}
	var wg sync.WaitGroup
	for r, calls := range [][]kernels.Call{norm, nil} {
		wg.Go(func() {
			if err := ds[r].Start(calls, nil, kernels.Fetch{}); !errors.Is(err, kernels.ErrKernel) {
				t.Errorf("rank %d: %v", r, err)
			}
		})
	}
	wg.Wait()
	wg.Go(func() {
		if err := ds[0].Start(nil, nil, kernels.Fetch{}); !errors.Is(err, errClosed) {
			t.Errorf("rank 0: %v, want %v", err, errClosed)
		}
	})
	if err := ds[1].Close(); err != nil {
		t.Error(err)
	}
	wg.Wait()
	if err := ds[0].Close(); err != nil {
		t.Error(err)
	}
	if _, err := ds[0].Alloc(1, kernels.Sharded); err == nil {
		t.Error("Alloc after Close succeeded")
	}
}

// TestPanics: a bug in an implementation is an error that names the call, on
// whatever worker it happens.
func TestPanics(t *testing.T) {
	e := newExecutor(2, 3)
	defer e.close()
	for parts := 1; parts <= 8; parts++ {
		c := kernels.Call{Kernel: "gather_rows", Layer: 7}
		var after atomic.Int32
		bad := &impl{run: func(x *frame, lo, hi int) error {
			if hi == 4 {
				panic("oh no")
			}
			return nil
		}}
		next := &impl{run: func(x *frame, lo, hi int) error { after.Add(1); return nil }}
		j := &job{tasks: []task{{call: &c, impl: bad, units: 4, ranks: 2}, {call: &c, impl: next, units: 4, ranks: 2}},
			stages: []stage{{0, 1, uint32(parts)}, {1, 2, 4}}}
		j.left.Store(int32(parts))
		j.clock(2)
		j.inside.Add(2)
		e.workers[1].wake <- j
		e.workers[2].wake <- j
		j.work(e.workers[0])
		if j.err == nil || !errors.Is(j.err, kernels.ErrDevice) ||
			!strings.Contains(j.err.Error(), "gather_rows of layer 7") {
			t.Fatalf("%d parts: %v", parts, j.err)
		}
		if after.Load() > 0 {
			t.Errorf("%d parts: the list went on", parts)
		}
	}
}

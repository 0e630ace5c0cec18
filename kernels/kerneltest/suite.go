package kerneltest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"glmbatch/kernels"
)

// Open makes the devices of a group of ranks; it may skip the test where the
// machine has not enough of them. The suite closes them.
type Open func(t testing.TB, ranks int) []kernels.Device

// Run is the suite.
func Run(t *testing.T, open Open) {
	for i := range kernels.Table {
		k := &kernels.Table[i]
		t.Run(string(k.Name), func(t *testing.T) {
			if k.Class == kernels.Comm {
				testCollective(t, open, k)
				return
			}
			testKernel(t, open, k)
		})
	}
	t.Run("index_topk of hard rows", func(t *testing.T) { testSelection(t, open) })
	t.Run("FP8 with scales for blocks as BF16", func(t *testing.T) { testBlocks(t, open) })
	t.Run("rank order", func(t *testing.T) { testRankOrder(t, open) })
	t.Run("messages", func(t *testing.T) { Messages(t, open, 512<<10) })
	t.Run("spans", func(t *testing.T) { testSpans(t, open) })
	t.Run("errors", func(t *testing.T) { testErrors(t, open) })
	t.Run("memory", func(t *testing.T) { testMemory(t, open) })
}

// maxValues bounds the weights of an example, so that the reference stays fast.
const maxValues = 4 << 20

// shrunk is an example's dimensions with fewer experts, where they hold too much.
func shrunk(d kernels.Dims) kernels.Dims {
	if d.N == 0 || d.K == 0 {
		return d
	}
	for d.Groups > 2*d.TopK && int64(d.Groups)*int64(d.N)*int64(d.K) > maxValues {
		d.Groups /= 2
	}
	return d
}

// shortFLOPs bounds the examples of short runs, those under a tool that watches every
// access say. Sampling passes over a row many times, which its cost, the least work,
// does not say: such a run has few rows of the short ones.
const (
	shortFLOPs  = 4 << 20
	shortSample = 33 // rows
)

// long reports whether an example is too much for this run.
func long(k *kernels.Kernel, d kernels.Dims) bool {
	return testing.Short() && (k.Cost(d).FLOPs > shortFLOPs || k.Class == kernels.Sample &&
		int(d.M)*int(d.N) > shortSample*2048)
}

func testKernel(t *testing.T, open Open, k *kernels.Kernel) {
	worst, exact, rounded := 0.0, 0.0, 0.0
	if len(k.Examples) == 0 {
		t.Error("no examples")
	}
	for n, d := range k.Examples {
		if n > 0 && long(k, d) {
			continue
		}
		b, e := opened(t, open(t, 1)), newExample(k, n, shrunk(d), 1, false)
		worst = max(worst, testExample(t, b, e))
		if k.AsksExact() {
			e.scalars = [4]float32{kernels.ExactInputs}
			exact = max(exact, testExample(t, b, e))
		}
		if k.RoundInputs(&e.scalars); k.RoundsInputs(e.scalars) {
			e.unturned()
			rounded = max(rounded, testExample(t, b, e))
		}
	}
	t.Run("many rows", func(t *testing.T) { testManyRows(t, open, k) })
	t.Run("ranks", func(t *testing.T) {
		b := opened(t, open(t, 2))
		for _, replicated := range []bool{false, true} {
			e := newExample(k, 0, shrunk(k.Examples[0]), 2, replicated)
			w, err := e.compare(b.place(e, false).run())
			if err != nil {
				t.Errorf("replicated %v: %v", replicated, err)
			}
			worst = max(worst, w)
		}
		e := newExample(k, 0, shrunk(k.Examples[0]), 2, false)
		e.shareBatch()
		w, err := e.compare(b.place(e, false).run())
		if err != nil {
			t.Errorf("one batch for all ranks: %v", err)
		}
		worst = max(worst, w)
	})
	t.Logf("worst difference %.2g of %.2g, %.2g where exact, %.2g of rounded inputs", worst, k.MaxDiff, exact, rounded)
}

// testExample compares with the reference and checks that bits depend on a row alone.
func testExample(t *testing.T, b *bench, e *example) float64 {
	got := b.place(e, false).run()
	worst, err := e.compare(got)
	if err != nil {
		t.Errorf("%+v: %v", e.d, err)
	}
	every := e.everyRow()
	check := func(what string, pitched bool, idx []int) {
		t.Helper()
		part := b.place(e.rows(idx), pitched).run()
		if err := e.same(got, part, idx); err != nil {
			t.Errorf("%+v: %s: %v", e.d, what, err)
		}
	}
	check("a second run", false, every)
	check("strided views", true, every)
	if e.d.M > 1 {
		last := len(every) - 1
		for _, m := range []int{0, last / 2, last} {
			check(fmt.Sprintf("row %d alone", m), false, []int{m})
		}
		turned := slices.Clone(every)
		slices.Reverse(turned)
		check("in reverse order", false, turned)
		check("without the first row", true, turned[:last])
	}
	return worst
}

func testCollective(t *testing.T, open Open, k *kernels.Kernel) {
	for _, n := range []int{1, 2, 4, 8} {
		t.Run(fmt.Sprintf("ranks=%d", n), func(t *testing.T) {
			b, worst := opened(t, open(t, n)), 0.0
			for i, d := range k.Examples {
				d.Ranks = int32(n)
				e := newExample(k, i, d, n, false)
				own := func(j int) bool { // inputs that differ by rank; outputs too where the ranks' rows are theirs
					return j == 0 || k.Op == "reduce_scatter_norm" && e.args[j].Role != kernels.In
				}
				for j, a := range e.args {
					if !own(j) {
						a.data = a.data[:1]
					}
				}
				worst = max(worst, testExample(t, b, e))
				for j, a := range e.args { // the others may share the memory, if the device has it so
					if !own(j) {
						a.sharing = kernels.Replicated
					}
				}
				w, err := e.compare(b.place(e, false).run())
				if err != nil {
					t.Errorf("replicated: %v", err)
				}
				worst = max(worst, w)
			}
			t.Logf("worst difference %.2g of %.2g", worst, k.MaxDiff)
		})
	}
}

// testRankOrder adds parts that only sum up to 1 in the order of the ranks.
func testRankOrder(t *testing.T, open Open) {
	k := kernels.Lookup("all_reduce_norm")
	e := newExample(k, 0, kernels.Dims{M: 1, N: 256, Ranks: 4}, 4, false)
	for r, v := range []float32{1e8, -1e8, 1, 0} {
		e.args[0].data[r] = putFloats(slices.Repeat([]float32{v}, 256))
		e.args[1].data[r] = make([]byte, 4*256)
	}
	for r, x := range opened(t, open(t, 4)).place(e, false).run()[1] {
		if v := getFloats(x); v[0] != 1 || v[255] != 1 {
			t.Errorf("rank %d has the sum %g, want 1", r, v[0])
		}
	}
}

func testSpans(t *testing.T, open Open) {
	b := opened(t, open(t, 2))
	e := newExample(kernels.Lookup("moe_up_f32"), 0, kernels.Dims{M: 3, N: 32, K: 64, Groups: 16, TopK: 2}, 2, false)
	for r := range 2 { // all rows choose experts 3 and 7
		e.args[2].data[r] = putInts([]int32{3, 7, 3, 7, 3, 7})
	}
	norm := newExample(kernels.Lookup("rms_norm"), 0, kernels.Dims{M: 3, K: 64}, 2, true)
	calls := []kernels.Call{b.place(norm, false).call, b.place(e, false).call, b.place(norm, false).call}
	spans := [][]kernels.Span{make([]kernels.Span, 3), make([]kernels.Span, 3)}
	before := kernels.Now()
	if err := b.g.Run(calls, spans); err != nil {
		t.Fatal(err)
	}
	after := kernels.Now()
	for r, ss := range spans {
		at := before
		for i, s := range ss {
			if s.Start < at || s.End < s.Start || s.End > after {
				t.Errorf("rank %d, call %d: %+v after %d, before %d", r, i, s, at, after)
			}
			at = s.End
		}
		if ss[0].Groups != 0 || ss[1].Groups != 2 || ss[2].Groups != 0 {
			t.Errorf("rank %d has groups %d, %d, %d; want 0, 2, 0", r, ss[0].Groups, ss[1].Groups, ss[2].Groups)
		}
	}
}

// testErrors gives each kernel calls that do not fit its row.
func testErrors(t *testing.T, open Open) {
	b := opened(t, open(t, 1))
	refused := func(what string, c kernels.Call) {
		t.Helper()
		if err := b.g.Run([]kernels.Call{c}, nil); !errors.Is(err, kernels.ErrKernel) {
			t.Errorf("%s: error is %v, want %v", what, err, kernels.ErrKernel)
		}
	}
	refused("an unknown kernel", kernels.Call{Kernel: "no_such_kernel"})
	for i := range kernels.Table {
		k := &kernels.Table[i]
		d := shrunk(k.Examples[0])
		if k.Class == kernels.Comm {
			d.Ranks = 1
		}
		p := b.place(newExample(k, 0, d, 1, false), false)
		good := p.call
		changed := func(j int, f func(*kernels.Buffer)) kernels.Call {
			c := good
			c.Args = slices.Clone(good.Args)
			f(&c.Args[j])
			return c
		}
		short := good
		short.Args = good.Args[:len(good.Args)-1]
		refused(string(k.Name)+" without its last argument", short)
		for j, a := range k.Args {
			if p.args[j].none {
				continue
			}
			name := fmt.Sprintf("%s, argument %s", k.Name, a.Name)
			if a.Role == kernels.Weight {
				refused(name+" missing", changed(j, func(v *kernels.Buffer) { *v = kernels.Buffer{} }))
				continue
			}
			refused(name+" outside the buffers", changed(j, func(v *kernels.Buffer) { v.Index = 1 << 30 }))
			refused(name+" past its buffer's end", changed(j, func(v *kernels.Buffer) { v.Len += 2 * guard }))
			if a.Len != nil && a.Len(d) > 0 {
				refused(name+" too short", changed(j, func(v *kernels.Buffer) { v.Len -= 4 }))
			}
		}
		if err := b.g.Run([]kernels.Call{good}, nil); err != nil {
			t.Errorf("%s after the errors: %v", k.Name, err)
		}
	}
}

func testMemory(t *testing.T, open Open) {
	b := opened(t, open(t, 2))
	if _, err := b.g.Alloc(1<<50, kernels.Sharded); !errors.Is(err, kernels.ErrMemory) {
		t.Errorf("allocating 1 PiB: %v, want %v", err, kernels.ErrMemory)
	}
	buf, err := b.g.Alloc(4096, kernels.Sharded)
	if err != nil {
		t.Fatalf("after that: %v", err)
	}
	data := make([]byte, 4096)
	data[0] = 1
	if err := b.g.Download(1, data, buf); err != nil || data[0] != 0 {
		t.Errorf("new memory is not zero: %d, %v", data[0], err)
	}
	if err := b.g.Upload(buf.Slice(4000, 96), make([]byte, 97)); err == nil {
		t.Error("uploading past a view's end succeeded")
	}
	if _, err := b.g.Load(kernels.Sharded, func(int) kernels.Weights {
		return kernels.Weights{Name: "bad.weight", Format: kernels.F32, Count: 1, Rows: 16, Cols: 16,
			Read: func(int, kernels.Alloc) (kernels.Matrix, error) {
				return kernels.Matrix{Data: make([]byte, 8)}, nil
			}}
	}); err == nil {
		t.Error("loading a weight with too few bytes succeeded")
	}
}

// SameBits checks that two ways to open a device give the same bits: with other
// numbers of threads, say.
func SameBits(t *testing.T, a, b Open) {
	for i := range kernels.Table {
		k := &kernels.Table[i]
		t.Run(string(k.Name), func(t *testing.T) {
			for n, d := range k.Examples {
				if k.Cost(d).FLOPs > shortFLOPs {
					continue
				}
				if k.Class == kernels.Comm {
					d.Ranks = 2
				}
				e := newExample(k, n, shrunk(d), 2, false)
				x, y := opened(t, a(t, 2)).place(e, false).run(), opened(t, b(t, 2)).place(e, false).run()
				if err := e.same(x, y, e.everyRow()); err != nil {
					t.Errorf("%+v: %v", e.d, err)
				}
			}
		})
	}
}

// One runs the part of the suite that is about one kernel, for devices that have
// several ways to run it.
func One(t *testing.T, open Open, name kernels.Name) { testKernel(t, open, kernels.Lookup(name)) }

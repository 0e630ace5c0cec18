package glm5

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"glmbatch/golden"
	"glmbatch/kernels"
)

// sketch is a model without weights or memory: buffers of the right sizes that
// no device has. Routed experts are NVFP4, all else BF16.
type sketch struct {
	*Model
	sizes []int64 // of the buffers, by index
}

func newSketch(t testing.TB, config string, ranks int, o Options) *sketch {
	t.Helper()
	raw, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	c, err := ParseConfig(raw)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Validate(&c); err != nil {
		t.Fatal(err)
	}
	o = o.withDefaults(&c)
	if o.Shards == 0 {
		o.Shards = ranks
	}
	s := &sketch{Model: &Model{Config: c, o: o}}
	alloc := func(n int64, _ kernels.Sharing) (kernels.Buffer, error) {
		s.sizes = append(s.sizes, n)
		return kernels.Buffer{Index: uint32(len(s.sizes)), Len: n}, nil
	}
	some := func() kernels.Buffer { b, _ := alloc(1<<40, kernels.Replicated); return b }
	n := o.Shards
	parts := n / o.Homes() // of attention and of the head
	lin := func(rows, cols int, whole bool) linear {
		return linear{parts: []part{{packed: packed{some(), "gemm_bf16"}, rows: rows}}, rows: rows, cols: cols,
			replicated: whole}
	}
	s.w = &loaded{
		embed: packed{some(), "embed_bf16"},
		rope:  some(),
		norm:  some(),
		head:  lin(c.Vocab/parts, c.Hidden, parts == 1),
	}
	for i := range o.layers(&c) {
		l := layer{attnNorm: some(), mlpNorm: some(), queryNorm: some(), latentNorm: some(), latentCache: some(),
			queryUp: lin(c.Heads*c.QKHeadDim()/parts, c.QLoRA, parts == 1), out: lin(c.Hidden, c.Heads*c.VHead/parts,
				parts == 1),
			absorb: packed{some(), "q_absorb_bf16"}, valuesUp: packed{some(), "v_up_bf16"}}
		width := c.QLoRA + c.KVLoRA + c.QKRope
		if c.IndexerFull(i) {
			width = c.frontWidth()
			l.index = &indexer{queryUp: lin(c.IndexHeads*c.IndexHeadDim, c.QLoRA, true), keyNorm: some(),
				keyBias: some(), cache: some()}
		}
		l.front = lin(width, c.Hidden, true)
		mlpOf := func(inner int) mlp {
			return mlp{gateUp: lin(2*inner/n, c.Hidden, false), down: lin(c.Hidden, inner/n, false)}
		}
		if c.Dense(i) {
			l.mlp = mlpOf(c.Intermediate)
		} else {
			l.experts = &mixture{router: lin(c.Experts, c.Hidden, true), bias: some(),
				shared: mlpOf(c.SharedIntermediate()),
				up:     packed{some(), "moe_up_fp4"}, down: packed{some(), "moe_down_fp4"}}
		}
		s.w.layers = append(s.w.layers, l)
	}
	if o.MTP {
		s.w.mtp = &prediction{embedNorm: some(), hiddenNorm: some(), norm: some(),
			join: lin(c.Hidden, 2*c.Hidden, true)}
	}
	a, err := newArena(&c, o, alloc)
	if err != nil {
		t.Fatal(err)
	}
	s.buf = *a
	s.prepare(ranks)
	return s
}

// check fails if a call does not fit its row of the table or its buffers.
func (s *sketch) check(t *testing.T, calls []kernels.Call) {
	t.Helper()
	for i := range calls {
		c := &calls[i]
		if err := c.Check(); err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
		cost := c.Cost(0)
		if cost.HBM <= 0 || cost.Wire < 0 || cost.FLOPs < 0 {
			t.Fatalf("call %d %s %+v costs %+v", i, c.Kernel, c.Dims, cost)
		}
		k := kernels.Lookup(c.Kernel)
		for j, b := range c.Args {
			if b.Index == 0 {
				if c.Kernel != "mla_attend_bf16" || c.Dims.TopK != 0 || k.Args[j].Name != "sel" {
					t.Fatalf("call %d %s lacks argument %s", i, c.Kernel, k.Args[j].Name)
				}
				continue
			}
			if b.Offset < 0 || b.Len < 0 || b.Offset+b.Len > s.sizes[b.Index-1] {
				t.Fatalf("call %d %s: argument %s is %+v of %d bytes", i, c.Kernel, k.Args[j].Name, b,
					s.sizes[b.Index-1])
			}
			if n := k.Args[j].Len; n != nil && b.Pitch != 0 && int64(c.Dims.M-1)*int64(b.Pitch)+
				4*n(c.Dims)/int64(c.Dims.M) > b.Len {
				t.Fatalf("call %d %s: argument %s is %+v for %+v", i, c.Kernel, k.Args[j].Name, b, c.Dims)
			}
		}
	}
}

// checked reports what of a batch does not fit the model.
func (s *sketch) checked(b *Batch) error {
	var c cut
	s.cut(b, &c)
	return s.Model.check(b, &c)
}

// batch makes rows of sequences that have cached and then compute some tokens.
func (s *sketch) batch(seqs ...[2]int) *Batch {
	b := &Batch{}
	for _, long := range []bool{false, true} {
		for i, q := range seqs {
			for pos := q[0]; pos < q[0]+q[1]; pos++ {
				if s.Config.IsLong(pos) == long {
					row := b.Add(1, int32(pos), int32(i), int32(pos))
					if pos == q[0]+q[1]-1 {
						b.Logits, b.Params = append(b.Logits, row), append(b.Params, kernels.Greedy())
					}
				}
			}
		}
	}
	return b
}

// apart makes a batch of a sequence on each rank, from a position on so many rows, the last of
// which samples.
func (s *sketch) apart(ranks ...[]int) *Batch {
	b := &Batch{}
	for r, q := range ranks {
		if q == nil {
			continue
		}
		for pos := q[0]; pos < q[0]+q[1]; pos++ {
			row := b.Add(1, int32(pos), int32(r*s.o.MaxSeqs), int32(pos))
			if pos == q[0]+q[1]-1 {
				b.Logits, b.Params = append(b.Logits, row), append(b.Params, kernels.Greedy())
			}
		}
	}
	return b
}

var (
	glm5Config  = filepath.Join("configs", "glm-5.json")
	glm52Config = filepath.Join("configs", "glm-5.2.json")
)

func TestProgramFitsItsBuffers(t *testing.T) {
	for _, config := range []string{glm5Config, glm52Config} {
		for _, k := range []struct{ ranks, shards int }{{1, 1}, {8, 8}, {1, 8}, {2, 8}} {
			s := newSketch(t, config, k.ranks, Options{MaxRows: 3000, Context: 150_000, MTP: true, Shards: k.shards})
			r := rand.New(rand.NewPCG(5, 6))
			for _, b := range []*Batch{
				s.batch([2]int{0, 1}), s.batch([2]int{149_999, 1}), s.batch([2]int{0, 3000}),
				s.batch([2]int{147_000, 3000}),
				s.batch([2]int{2000, 100}, [2]int{5, 1}, [2]int{90_000, 1}, [2]int{2047, 1}, [2]int{2048, 1}),
			} {
				if err := s.checked(b); err != nil {
					t.Fatal(err)
				}
				s.check(t, s.Program(b))
				s.check(t, s.MTPProgram(b))
			}
			for range 5 {
				var seqs [][2]int
				for range 1 + r.IntN(30) {
					seqs = append(seqs, [2]int{r.IntN(140_000), 1 + r.IntN(90)})
				}
				b := s.batch(seqs...)
				if err := s.checked(b); err != nil {
					t.Fatal(err)
				}
				s.check(t, s.Program(b))
			}
			if k.shards > 1 {
				fitsApart(t, config, k.ranks, k.shards)
			}
		}
	}
}

func fitsApart(t *testing.T, config string, ranks, shards int) {
	s := newSketch(t, config, ranks, Options{Layout: Throughput, MaxRows: 3000, MaxSeqs: 1, Context: 150_000, MTP: true,
		Shards: shards})
	all := []*Batch{s.apart([]int{0, 3000}), s.apart([]int{147_000, 3000}), s.apart([]int{2047, 2})}
	if ranks > 1 {
		all = append(all, s.apart([]int{0, 3000}, []int{147_000, 3000}), s.apart(nil, []int{149_999, 1}),
			s.apart([]int{2047, 2}, []int{5, 1}))
	}
	for _, b := range all {
		if err := s.checked(b); err != nil {
			t.Fatal(err)
		}
		s.check(t, s.Program(b))
		s.check(t, s.MTPProgram(b))
	}
}

// The lists for a few rows of a small model, as a text to read, of each layout.
func TestProgramGolden(t *testing.T) {
	for _, l := range Layouts {
		t.Run(string(l), func(t *testing.T) { testProgramGolden(t, l) })
	}
}

func testProgramGolden(t *testing.T, l Layout) {
	s := newSketch(t, filepath.Join("..", "..", "datasets", "demo", "model", "config.json"), 8, Options{Layout: l,
		MaxRows: 64, MaxSeqs: 1, Context: 512, MTP: true})
	b := s.batch([2]int{60, 8}, [2]int{200, 1})
	file := "program.txt"
	if l == Throughput {
		file = "program_throughput.txt"
		b = s.apart([]int{60, 8}, nil, []int{200, 1}, []int{3, 2})
	}
	var text strings.Builder
	for _, p := range []struct {
		name  string
		calls func(*Batch) []kernels.Call
	}{{"Program", s.Program}, {"MTPProgram", s.MTPProgram}} {
		fmt.Fprintf(&text, "%s of rows 60..67 of one sequence and row 200 of another, 8 ranks\n", p.name)
		for _, c := range p.calls(b) {
			if c.Layer > 1 && c.Layer < int16(s.Config.Layers) {
				continue // as layer 1
			}
			who := "own"
			if c.Replicated {
				who = "all"
			}
			fmt.Fprintf(&text, "%3d %s %-16s %s\n", c.Layer, who, c.Kernel, dims(c.Dims))
		}
	}
	path := filepath.Join("testdata", file)
	if golden.Update() {
		if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if text.String() != string(want) {
		t.Errorf("the program has changed; if that is meant, run with -update:\n%s", text.String())
	}
}

func dims(d kernels.Dims) string {
	s := ""
	for _, f := range []struct {
		name string
		v    int64
	}{{"M", int64(d.M)}, {"N", int64(d.N)}, {"K", int64(d.K)}, {"groups", int64(d.Groups)}, {"heads", int64(d.Heads)},
		{"rope", int64(d.Rope)},
		{"topk", int64(d.TopK)}, {"ranks", int64(d.Ranks)}, {"slots", d.Slots}, {"ctx", d.Ctx}} {
		if f.v != 0 {
			s += fmt.Sprintf(" %s=%d", f.name, f.v)
		}
	}
	return s[1:]
}

// A long generation has few different lists, so that a device captures few
// graphs: for eight sequences those that begin to select, and eight widths of
// scores for each doubling of the longest context.
func TestListsOfALongGeneration(t *testing.T) {
	s := newSketch(t, glm5Config, 8, Options{MaxRows: 64, Context: 40_000})
	lists := map[string]int{}
	steps := 0
	for n := 0; n < 30_000; n += 16 {
		var seqs [][2]int
		for i := range 8 {
			seqs = append(seqs, [2]int{1000 + 700*i + n, 1})
		}
		b := s.batch(seqs...)
		for range b.Logits {
			b.From = append(b.From, 0)
		}
		var text strings.Builder
		calls := s.Program(b)
		s.check(t, calls[:60])
		for _, c := range calls[:60] { // later layers have the same calls
			c.Dims.Slots, c.Dims.Ctx = 0, 0
			fmt.Fprintln(&text, c.Kernel, c.Dims, c.Scalars, c.Args)
		}
		lists[text.String()]++
		steps++
	}
	if len(lists) > 40 {
		t.Errorf("%d lists in %d steps", len(lists), steps)
	}
}

// A decoded token of GLM-5 as released (experts NVFP4, all else BF16) reads
// 9.83 GB of weights a rank of eight: routed experts 1.593, shared 0.708,
// sharded attention 2.904, replicated projections 3.977, and the rest.
func TestBytesOfAToken(t *testing.T) {
	s := newSketch(t, glm5Config, 8, Options{Context: 4096})
	var all, experts int64
	for _, c := range s.Program(s.batch([2]int{3000, 1})) {
		cost := c.Cost(0)
		if strings.HasPrefix(string(kernels.Lookup(c.Kernel).Class), "gemm.") {
			all += cost.HBM
		}
		if strings.HasPrefix(string(c.Kernel), "moe_") {
			experts += cost.HBM
		}
	}
	if all < 9.80e9 || all > 9.90e9 || experts < 1.58e9 || experts > 1.62e9 {
		t.Errorf("a token reads %d bytes of weights on a rank, %d of them for routed experts", all, experts)
	}
}

func BenchmarkProgram(b *testing.B) {
	s := newSketch(b, glm5Config, 8, Options{Context: 8192})
	for _, seqs := range []int{1, 64} {
		var of [][2]int
		for i := range seqs {
			of = append(of, [2]int{1000 + 50*i, 1})
		}
		in := s.batch(of...)
		b.Run(fmt.Sprintf("layers78/seqs%d", seqs), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.Program(in)
			}
		})
	}
}

package kerneltest

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"

	"glmbatch/kernels"
)

// argument is the contents of one argument, dense.
type argument struct {
	kernels.Arg
	sharing kernels.Sharing
	data    [][]byte   // one a rank, or a single one for all
	weights []*weights // likewise, of a weight
	words   int        // 4-byte values that belong to one row of the batch; 0: it has no such rows
	none    bool
}

// on returns a rank's contents.
func (a *argument) on(rank int) []byte { return a.data[min(rank, len(a.data)-1)] }

func (a *argument) weightOn(rank int) *weights { return a.weights[min(rank, len(a.weights)-1)] }

// example is one call with all that it reads.
type example struct {
	k          *kernels.Kernel
	d          kernels.Dims
	ranks      int
	replicated bool
	scalars    [4]float32
	args       []*argument
	pageWidth  int // page numbers in a row of the pages argument
}

// newExample makes inputs for example number n of a kernel.
func newExample(k *kernels.Kernel, n int, d kernels.Dims, ranks int, replicated bool) *example {
	e := &example{k: k, d: d, ranks: ranks, replicated: replicated}
	copies, sharing := ranks, kernels.Sharded
	if replicated {
		copies, sharing = 1, kernels.Replicated
	}
	h := fnv.New64a()
	h.Write([]byte(k.Name))
	for _, s := range k.Scalars {
		i := len(e.scalars)
		for j, name := range k.Scalars {
			if name == s {
				i = j
			}
		}
		e.scalars[i] = map[string]float32{"eps": 1e-5, "scale": 0.125, "n_group": 1, "topk_group": 1, "norm": 1}[s]
	}
	if k.Name == "moe_route" && n%2 == 0 {
		e.scalars = [4]float32{2.5, 4, 2, 1}
	}
	for _, a := range k.Args {
		arg := &argument{Arg: a, sharing: sharing}
		for c := range copies {
			fill{e, arg, seeded(h.Sum64(), uint64(n), uint64(c), uint64(len(e.args))),
				seeded(h.Sum64(), uint64(n), uint64(c)), c}.one()
		}
		e.args = append(e.args, arg)
	}
	return e
}

// shareBatch keeps what describes the batch, and caches that are read, once for
// all ranks, as a model's program does.
func (e *example) shareBatch() {
	for _, a := range e.args {
		if a.Role == kernels.In && a.data != nil && (a.Type != "f32" || a.Name == "rope") {
			a.data, a.sharing = a.data[:1], kernels.Replicated
		}
	}
}

// fill makes one copy of one argument. r is for this argument alone; what
// several arguments must agree on (contexts, sequences, pages) comes from layout,
// which is a function of the example.
type fill struct {
	e    *example
	arg  *argument
	r    *rand.Rand
	same *rand.Rand
	copy int
}

// layout is where a batch's tokens are: their sequences, positions and pages.
type layout struct {
	seq, pos  []int32 // of each row
	pages     []int32 // [sequences, width]
	width     int
	slots     []int32 // distinct ones, of each row
	cachePage int     // pages in the cache
}

const ropePositions = 4200

func (f fill) layout() layout {
	d := f.e.d
	m, r := int(d.M), f.same
	longest := 300
	switch {
	case f.e.k.Op == "index_logits" || f.e.k.Name == "index_topk":
		longest = int(d.N)
	case d.TopK > 0:
		longest = int(d.TopK) * 3 / 2
	case d.Ctx > 0:
		longest = int(d.Ctx) / m * 3 / 2
	}
	if f.e.k.Name != "index_topk" { // the others read angles
		longest = min(longest, ropePositions)
	}
	seqs := min((m+1)/2, 8)
	l := layout{width: longest/kernels.PageTokens + 1}
	for i := range m {
		l.seq = append(l.seq, int32(r.IntN(seqs)))
		p := r.IntN(longest)
		if i == m-1 {
			p = longest - 1
		}
		l.pos = append(l.pos, int32(p))
	}
	l.cachePage = seqs*l.width + 3 + m/kernels.PageTokens
	for _, p := range r.Perm(l.cachePage)[:seqs*l.width] {
		l.pages = append(l.pages, int32(p))
	}
	for _, s := range r.Perm(l.cachePage * kernels.PageTokens)[:m] {
		l.slots = append(l.slots, int32(s))
	}
	return l
}

func (f fill) one() {
	a, d, r := f.arg, f.e.d, f.r
	if a.Len != nil {
		wider := d
		wider.M++
		if a.Len(wider) != a.Len(d) {
			a.words = int(a.Len(d) / int64(d.M))
		}
	}
	m := int(d.M)
	switch f.e.k.Op {
	case "feed":
		f.feed()
		return
	case "accept":
		f.accept()
		return
	}
	switch a.Name {
	case "w", "table":
		if a.Role == kernels.Weight {
			f.weight()
			return
		}
		v := normals(r, int(a.Len(d)), .2)
		for i := range v {
			v[i]++
		}
		f.floats(v)
	case "tokens":
		f.ints(randomInts(r, m, tableRows))
	case "rows":
		f.ints(randomInts(r, m, m+sourceRows))
	case "to":
		f.meeting()
	case "pos":
		f.ints(f.layout().pos)
	case "seq":
		f.ints(f.layout().seq)
	case "slots":
		f.ints(f.layout().slots)
	case "pages":
		f.ints(f.layout().pages)
		f.e.pageWidth = f.layout().width
	case "rope":
		v := make([]float32, ropePositions*int(d.Rope))
		for p := range ropePositions {
			for i := range int(d.Rope) / 2 {
				s, c := math.Sincos(float64(p) * math.Pow(1e6, -2*float64(i)/float64(d.Rope)))
				v[p*int(d.Rope)+2*i], v[p*int(d.Rope)+2*i+1] = float32(c), float32(s)
			}
		}
		f.floats(v)
	case "experts":
		f.experts()
	case "sel":
		f.selection()
	case "cache":
		f.cache()
	case "pool":
		f.poison(int(d.Slots) * int(d.K+d.Rope) / 2)
	case "params":
		f.params(d.M)
	case "seen", "masks", "counts", "entries":
		f.steering()
	case "scores":
		v := normals(r, int(a.Len(d)), 1)
		for i := range v { // ties; rows of one value, of few, of great and small ones
			switch row := i / int(d.N); {
			case row%5 == 1:
				v[i] = -1.5
			case row%5 == 2 && i%7 > 0:
				v[i] = float32(i % 3)
			case row%5 == 3:
				v[i] = float32(math.Ldexp(float64(v[i]), i%90-45))
			case i%3 > 0:
				v[i] = float32(math.Round(float64(v[i])*8) / 8)
			}
		}
		f.floats(v)
	default:
		f.plain()
	}
}

const (
	tableRows  = 97
	sourceRows = 5
)

func (f fill) floats(v []float32) { f.arg.data = append(f.arg.data, putFloats(v)) }
func (f fill) ints(v []int32)     { f.arg.data = append(f.arg.data, putInts(v)) }

func randomInts(r *rand.Rand, n, below int) []int32 {
	v := make([]int32, n)
	for i := range v {
		v[i] = int32(r.IntN(below))
	}
	return v
}

// plain fills activations; outputs are poisoned with a pattern that is no number.
func (f fill) plain() {
	a, d := f.arg, f.e.d
	switch {
	case a.Type == "sampled":
		a.words = (8 + 8*kernels.MaxLogprobs) / 4
		f.poison(a.words * int(d.M))
	case a.Role == kernels.Out:
		f.poison(int(a.Len(d)))
	case a.Len == nil: // the rows that gather_rows chooses from
		f.floats(normals(f.r, (int(d.M)+sourceRows)*int(d.N), 1))
	default:
		scale := 1.0
		if a.Name == "logits" {
			scale = 3
		}
		v := normals(f.r, int(a.Len(d)), scale)
		if a.Name == "weights" || a.Name == "bias" {
			for i := range v {
				v[i] = float32(math.Abs(float64(v[i]))) / 4
			}
		}
		f.floats(v)
	}
}

func (f fill) poison(words int) {
	b := make([]byte, 4*words)
	for i := 0; i < len(b); i += 4 {
		binary.LittleEndian.PutUint32(b[i:], 0xffabcdef)
	}
	f.arg.data = append(f.arg.data, b)
}

func (f fill) weight() {
	d, seed := f.e.d, f.r.Uint64()
	wf, count, rows, cols, use := f.e.k.Format, 1, int(d.N), int(d.K), kernels.Multiply
	if f.e.k.Inputs == kernels.FP4 {
		use = kernels.Multiply4
	}
	switch f.e.k.Op {
	case "embed":
		rows, cols, use = tableRows, int(d.N), kernels.Gather
	case "moe_up":
		count, rows = int(d.Groups), 2*rows
	case "moe_down":
		count = int(d.Groups)
	case "q_absorb", "v_up":
		count = int(d.Heads)
	}
	f.arg.weights = append(f.arg.weights, newWeights(seed, wf, use, count, rows, cols))
}

func (f fill) experts() {
	if f.arg.Role == kernels.Out {
		f.poison(int(f.arg.Len(f.e.d)))
		return
	}
	var v []int32
	for range f.e.d.M {
		chosen := f.r.Perm(int(f.e.d.Groups))[:f.e.d.TopK]
		for e := range f.e.d.Groups {
			for _, c := range chosen {
				if int32(c) == e {
					v = append(v, e)
				}
			}
		}
	}
	f.ints(v)
}

// meeting places K rows, of all ranks, anywhere among those of the ranks: the same on all.
func (f fill) meeting() {
	d := f.e.d
	places := int(d.M) * max(1, int(d.Ranks))
	to := slices.Repeat([]int32{-1}, places)
	for row, at := range rand.New(rand.NewPCG(uint64(places), uint64(d.K))).Perm(places)[:d.K] {
		to[at] = int32(row)
	}
	f.ints(to)
}

func (f fill) selection() {
	k := int(f.e.d.TopK)
	if f.arg.Role == kernels.Out {
		f.poison(int(f.arg.Len(f.e.d)))
		return
	}
	if k == 0 {
		f.arg.none = true
		f.arg.data = append(f.arg.data, nil)
		return
	}
	var v []int32
	for _, pos := range f.layout().pos {
		n := int(pos) + 1
		in := make([]bool, n)
		for _, p := range f.r.Perm(n)[:min(n, k)] {
			in[p] = true
		}
		row := make([]int32, 0, k)
		for p, ok := range in {
			if ok {
				row = append(row, int32(p))
			}
		}
		for len(row) < k {
			row = append(row, -1)
		}
		v = append(v, row...)
	}
	f.ints(v)
}

// cache fills all pages with valid entries.
func (f fill) cache() {
	c := f.e.cacheOf(f.copy)
	c.data = make([]byte, f.layout().cachePage*kernels.PageTokens*c.entry())
	values := make([]float64, c.width)
	for s := range f.layout().cachePage * kernels.PageTokens {
		for i := range values {
			values[i] = f.r.NormFloat64()
		}
		c.put(s, values)
	}
	f.arg.data = append(f.arg.data, c.data)
}

// unturned makes all angles of an example 0: a value that is rotated and then rounded may be
// rounded either way, as rotations are off by a little.
func (e *example) unturned() {
	for _, a := range e.args {
		if a.Name != "rope" {
			continue
		}
		for i, data := range a.data {
			v := make([]float32, len(data)/4)
			for j := 0; j < len(v); j += 2 {
				v[j] = 1
			}
			a.data[i] = putFloats(v)
		}
	}
}

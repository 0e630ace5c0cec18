package glm5

import (
	"fmt"
	"sync"

	"glmbatch/engine/checkpoint"
	"glmbatch/kernels"
	"glmbatch/kernels/ranks"
)

// linear is y = x Wᵀ on a rank. W may be several weights of a checkpoint one
// above the other; those of one format are one product, others follow apart.
type linear struct {
	parts      []part
	rows, cols int  // of a rank's W
	replicated bool // W is whole on every rank
}

type part struct {
	packed
	col, rows int // columns of y that it fills
}

// packed is a loaded weight and the kernel that reads its format.
type packed struct {
	buf    kernels.Buffer
	kernel kernels.Name
}

// loader takes weights from a checkpoint to the ranks.
type loader struct {
	c       *Config
	ck      *checkpoint.Checkpoint
	g       *ranks.Group
	act     Act
	dense   kernels.Format // see Options.Dense
	exact   bool           // no value may be rounded
	rounded rounded
	shards  int // parts that weights are cut into
	layout  Layout
	tensors map[string]Tensor // those of the layer that is loaded, and those outside the layers
	layers  int               // that will be loaded
	reading sync.WaitGroup    // of the next one
}

func (l *loader) enter(layer int) {
	l.tensors = map[string]Tensor{}
	for t := range l.c.LayerTensors(layer) {
		l.tensors[t.Module()] = l.layout.Of(t)
	}
	l.readAhead(layer + 1)
}

// readAhead lets the disk work on a layer while the one before is loaded, if all
// of it is wanted here.
func (l *loader) readAhead(layer int) {
	l.reading.Wait()
	if layer >= l.layers || l.shards > l.g.Ranks() {
		return
	}
	var names []string
	for t := range l.c.LayerTensors(layer) {
		for _, s := range suffixes {
			names = append(names, t.Name+s)
		}
	}
	l.reading.Go(func() { l.ck.ReadAhead(names) })
}

// source is a weight of the checkpoint and the block of it that each rank has.
type source struct {
	checkpoint.Linear
	split Split
	part  Part
	runs  kernels.Format // the stored format, or FP8
}

func (l *loader) source(module string) (source, error) {
	t, ok := l.tensors[module]
	if !ok {
		return source{}, fmt.Errorf("%s: no such weight in this layer", module)
	}
	lin, err := l.ck.Linear(module)
	if err != nil {
		return source{}, err
	}
	if lin.Rows != t.Rows || lin.Cols != t.Cols {
		return source{}, fmt.Errorf("%s is [%d, %d], config.json says [%d, %d]", module, lin.Rows, lin.Cols,
			t.Rows, t.Cols)
	}
	lin = t.asStored(lin, l.exact, l.shards)
	return source{lin, t.Split, t.Part, t.Runs(lin.Format, l.dense)}, nil
}

// shape is a rank's share of s.
func (s *source) shape(n int) (rows, cols int) {
	return (&Tensor{Rows: s.Rows, Cols: s.Cols, Split: s.split}).Share(n)
}

// share returns the rank's share in format f, the stored one, or BF16 or float32.
func (s *source) share(a kernels.Alloc, f kernels.Format, rank, n int) (kernels.Matrix, error) {
	rows, cols := s.shape(n)
	l := s.Linear
	if l.Stored == kernels.FP8 && f != l.Format {
		l = l.As(f)
	}
	if l.Format != f {
		a = nil // it is decoded to memory of its own
	}
	var m kernels.Matrix
	var err error
	switch s.split {
	case Rows:
		m, err = l.SliceTo(a, rank*rows, (rank+1)*rows, 0, cols)
	case Cols:
		m, err = l.SliceTo(a, 0, rows, rank*cols, (rank+1)*cols)
	default:
		m, err = l.SliceTo(a, 0, rows, 0, cols)
	}
	if err != nil {
		return m, err
	}
	return decoded(m, l.Format, f, rows*cols), nil
}

// sharing says whether the ranks' shares differ.
func (s Split) sharing() kernels.Sharing {
	if s == Whole {
		return kernels.Replicated
	}
	return kernels.Sharded
}

// linear loads weights one above the other.
func (l *loader) linear(modules ...string) (linear, error) {
	var all []source
	for _, m := range modules {
		s, err := l.source(m)
		if err != nil {
			return linear{}, err
		}
		all = append(all, s)
	}
	w := linear{replicated: all[0].split == Whole}
	_, w.cols = all[0].shape(l.shards)
	for len(all) > 0 {
		n := mergeable(all)
		p, err := l.part(modules[0], all[:n])
		if err != nil {
			return linear{}, err
		}
		p.col = w.rows
		w.rows += p.rows
		w.parts = append(w.parts, p)
		all, modules = all[n:], modules[n:]
	}
	return w, nil
}

// mergeable returns how many weights from the first on can be one matrix: they
// run in one format, from one, and, as an FP8 matrix has one scale and an NVFP4
// matrix one or one for each half of its rows, fitting scales.
func mergeable(all []source) int {
	first := all[0]
	n := 1
	scaled := first.Format == kernels.FP4 || first.Format == kernels.FP8
	for n < len(all) && all[n].runs == first.runs && (all[n].Format == first.Format || first.runs != kernels.FP8) &&
		(!scaled || all[n].Global == first.Global) {
		n++
	}
	if n == 1 && len(all) == 2 && all[1].Format == kernels.FP4 && first.Format == kernels.FP4 &&
		all[1].Rows == first.Rows {
		return 2
	}
	return n
}

// part loads weights that are one matrix.
func (l *loader) part(name string, all []source) (part, error) {
	n := l.shards
	var p part
	for i := range all {
		rows, _ := all[i].shape(n)
		p.rows += rows
	}
	_, cols := all[0].shape(n)
	format := all[0].runs
	buf, err := l.g.Load(all[0].split.sharing(), func(rank int) kernels.Weights {
		return kernels.Weights{Name: name, Format: format, Count: 1, Rows: p.rows, Cols: cols,
			Read: func(_ int, a kernels.Alloc) (kernels.Matrix, error) {
				if format == kernels.FP8 && all[0].Format != kernels.FP8 {
					return l.rounded.stack(a, all, rank, n)
				}
				return stack(a, all, format, rank, n)
			}}
	})
	p.packed = packed{buf, kernels.With("gemm", format)}
	return p, err
}

// stack puts a rank's shares one above the other, in a format that is theirs, or BF16
// or float32.
func stack(a kernels.Alloc, all []source, f kernels.Format, rank, n int) (kernels.Matrix, error) {
	if len(all) == 1 {
		return all[0].share(a, f, rank, n)
	}
	var m kernels.Matrix
	var data, scales [][]byte
	for i := range all {
		t, err := all[i].share(nil, f, rank, n)
		if err != nil {
			return kernels.Matrix{}, err
		}
		data, scales = append(data, t.Data), append(scales, t.Scales)
		m.Input = max(m.Input, t.Input) // the parts have one input
		if i == 0 {
			m.Global, m.GlobalUp = t.Global, t.GlobalUp
		} else if t.Global != m.Global {
			m.GlobalUp = t.Global
		}
	}
	m.Data, m.Scales = concat(a, data), concat(a, scales)
	return m, nil
}

// concat is slices.Concat in memory of a.
func concat(a kernels.Alloc, parts [][]byte) []byte {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	if n == 0 {
		return nil
	}
	out := a.Bytes(n)
	at := 0
	for _, p := range parts {
		at += copy(out[at:], p)
	}
	return out
}

// vector loads a norm's weight or a bias, as float32, whole on every rank.
func (l *loader) vector(name string, n int) (kernels.Buffer, error) {
	v, err := l.ck.Vector(name)
	if err != nil {
		return kernels.Buffer{}, err
	}
	if len(v) != n {
		return kernels.Buffer{}, fmt.Errorf("%s has %d values, config.json says %d", name, len(v), n)
	}
	return l.floats(v)
}

// floats uploads values, whole on every rank.
func (l *loader) floats(v []float32) (kernels.Buffer, error) {
	b, err := l.g.Alloc(int64(len(v))*4, kernels.Replicated)
	if err != nil {
		return kernels.Buffer{}, err
	}
	return b, l.g.Upload(b, bytesOf(v))
}

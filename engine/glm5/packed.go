package glm5

import (
	"encoding/binary"
	"fmt"
	"math"

	"glmbatch/engine/checkpoint"
	"glmbatch/kernels"
	"glmbatch/kernels/nvfp4"
)

// embedding loads the table that token ids look rows up in.
func (l *loader) embedding() (packed, error) {
	s, err := l.source("model.embed_tokens")
	if err != nil {
		return packed{}, err
	}
	buf, err := l.g.Load(kernels.Replicated, func(int) kernels.Weights {
		return kernels.Weights{Name: s.Name, Format: s.Format, Use: kernels.Gather, Count: 1,
			Rows: s.Rows, Cols: s.Cols,
			Read: func(_ int, a kernels.Alloc) (kernels.Matrix, error) { return s.SliceTo(a, 0, s.Rows, 0, s.Cols) }}
	})
	return packed{buf, kernels.With("embed", s.Format)}, err
}

// kv_b_proj has, for each head, rows that take the latent to the head's key
// and then rows that take it to the head's value. Absorbed attention never
// makes the keys: it takes the query through the first, transposed.

// absorb loads each head's key rows, transposed.
func (l *loader) absorb(module string) (packed, error) {
	c := l.c
	return l.perHead("q_absorb", module, c.KVLoRA, c.QKNope,
		func(s *source, a kernels.Alloc, f kernels.Format, row int) (kernels.Matrix, error) {
			m, err := s.as(f, row, row+c.QKNope)
			m.Data = transpose(a, m.Data, c.QKNope, c.KVLoRA, width(f))
			return m, err
		})
}

// valuesUp loads each head's value rows.
func (l *loader) valuesUp(module string) (packed, error) {
	c := l.c
	return l.perHead("v_up", module, c.VHead, c.KVLoRA,
		func(s *source, _ kernels.Alloc, f kernels.Format, row int) (kernels.Matrix, error) {
			return s.as(f, row+c.QKNope, row+c.QKNope+c.VHead)
		})
}

// perHead loads a matrix [rows, cols] for each head of a rank; read gets the
// head's first row of the module. BF16 stays BF16, all else becomes float32.
func (l *loader) perHead(kernel kernels.Name, module string, rows, cols int,
	read func(s *source, a kernels.Alloc, f kernels.Format, row int) (kernels.Matrix, error)) (packed, error) {
	s, err := l.source(module)
	if err != nil {
		return packed{}, err
	}
	format := kernels.F32
	if s.Format == kernels.BF16 {
		format = kernels.BF16
	}
	heads, each := l.c.Heads, l.c.QKNope+l.c.VHead
	if s.split != Whole {
		heads /= l.shards
	}
	buf, err := l.g.Load(s.split.sharing(), func(rank int) kernels.Weights {
		first := 0
		if s.split != Whole {
			first = rank * heads
		}
		return kernels.Weights{
			Name:   string(kernel) + " of " + module,
			Format: format,
			Count:  heads,
			Rows:   rows,
			Cols:   cols,
			Read:   func(i int, a kernels.Alloc) (kernels.Matrix, error) { return read(&s, a, format, (first+i)*each) },
		}
	})
	return packed{buf, kernels.With(kernel, format)}, err
}

// as returns whole rows in a format, which is the stored one or float32.
func (s *source) as(f kernels.Format, from, to int) (kernels.Matrix, error) {
	m, err := s.Slice(from, to, 0, s.Cols)
	if err != nil {
		return m, err
	}
	return decoded(m, s.Format, f, (to-from)*s.Cols), nil
}

// decoded returns m, of n values in format have, in format want: the same, BF16, to
// which values are rounded, or float32.
func decoded(m kernels.Matrix, have, want kernels.Format, n int) kernels.Matrix {
	if have == want {
		return m
	}
	v := make([]float32, n)
	switch have {
	case kernels.FP4:
		nvfp4.Dequantize(v, m.Data, m.Scales, m.Global)
	case kernels.BF16:
		for i := range v {
			v[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(m.Data[2*i:])) << 16)
		}
	}
	if want == kernels.BF16 {
		return kernels.Matrix{Data: checkpoint.ToBF16(v)}
	}
	return kernels.Matrix{Data: bytesOf(v)}
}

// transpose returns [rows, cols] values of size bytes, 2 or 4, as [cols, rows].
func transpose(a kernels.Alloc, b []byte, rows, cols, size int) []byte {
	if len(b) < rows*cols*size {
		return nil // the slice failed
	}
	out := a.Bytes(rows * cols * size)
	for r := range rows {
		to, line := out[r*size:], b[r*cols*size:][:cols*size]
		for c := range cols {
			if size == 2 {
				binary.LittleEndian.PutUint16(to[c*rows*2:], binary.LittleEndian.Uint16(line[c*2:]))
			} else {
				binary.LittleEndian.PutUint32(to[c*rows*4:], binary.LittleEndian.Uint32(line[c*4:]))
			}
		}
	}
	return out
}

// width is the bytes of a value that is stored plainly.
func width(f kernels.Format) int {
	if f == kernels.BF16 {
		return 2
	}
	return 4
}

// expertsOf loads one matrix for each routed expert of layer i: the named
// weights one above the other. They run in their common format.
func (l *loader) expertsOf(i int, kernel kernels.Name, names ...string) (packed, error) {
	n := l.shards
	all := make([]source, 0, l.c.Experts*len(names))
	format := kernels.Format("")
	rows, cols := 0, 0
	for e := range l.c.Experts {
		rows = 0
		for _, name := range names {
			s, err := l.source(ExpertPrefix(i, e) + name)
			if err != nil {
				return packed{}, err
			}
			format = common(format, s.Format, l.exact)
			r, c := s.shape(n)
			rows, cols = rows+r, c
			all = append(all, s)
		}
	}
	name := fmt.Sprintf("%s of %smlp.experts", kernel, LayerPrefix(i))
	suffix, use := format, kernels.Multiply
	if format == kernels.FP4 {
		suffix = expertFormat[l.act]
		if l.act == W4A4 {
			use = kernels.Multiply4
		}
	}
	buf, err := l.g.Load(all[0].split.sharing(), func(rank int) kernels.Weights {
		return kernels.Weights{Name: name, Format: format, Use: use, Count: l.c.Experts, Rows: rows, Cols: cols,
			Read: func(e int, a kernels.Alloc) (kernels.Matrix, error) {
				return stack(a, all[e*len(names):(e+1)*len(names)], format, rank, n)
			}}
	})
	return packed{buf, kernels.With(kernel, suffix)}, err
}

// common is the format for weights that are multiplied together, of which those so far
// have one ("": there are none) and the next another: what both are, else BF16, to which
// values are rounded as they are for a model that is loaded as BF16, else float32, where
// one of them is or nothing may be rounded.
func common(sofar, next kernels.Format, exact bool) kernels.Format {
	switch {
	case sofar == "" || sofar == next:
		return next
	case sofar == kernels.F32 || next == kernels.F32 || exact:
		return kernels.F32
	}
	return kernels.BF16
}

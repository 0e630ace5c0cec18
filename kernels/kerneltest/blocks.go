package kerneltest

import (
	"bytes"
	"testing"

	"glmbatch/kernels"
)

// blocksFLOPs bounds the examples that are worth being done in two formats.
const blocksFLOPs = 1 << 28

// testBlocks checks that products with FP8 weights that have scales for blocks give the
// bits of products with the same values as BF16, of few rows and of many.
func testBlocks(t *testing.T, open Open) {
	for i := range kernels.Table {
		k := &kernels.Table[i]
		if k.Format != kernels.FP8B {
			continue
		}
		for n, d := range k.Examples {
			for _, rows := range []int32{d.M, 40} {
				d = shrunk(d)
				if d.M = rows; n > 0 && (long(k, d) || k.Cost(d).FLOPs > blocksFLOPs) {
					continue
				}
				e := newExample(k, n, d, 1, false)
				b := opened(t, open(t, 1))
				got, want := b.place(e, false).run(), b.place(e.plain(), false).run()
				for j, a := range k.Args {
					if (a.Role == kernels.Out || a.Role == kernels.InOut) && !bytes.Equal(got[j][0], want[j][0]) {
						t.Errorf("%s %+v: %s differs from that with BF16 weights", k.Name, d, a.Name)
					}
				}
			}
		}
	}
}

// plain is e with its weights as BF16.
func (e *example) plain() *example {
	p := *e
	p.k = kernels.Lookup(kernels.With(kernels.Name(e.k.Op), kernels.BF16))
	p.args = append([]*argument(nil), e.args...)
	for i, a := range p.args {
		if a.weights == nil {
			continue
		}
		c := *a
		c.weights = nil
		for _, w := range a.weights {
			q := *w
			q.Format = kernels.BF16
			q.Read = func(i int, _ kernels.Alloc) (kernels.Matrix, error) {
				values, _ := w.values(i)
				m := kernels.Matrix{Data: make([]byte, 2*len(values))}
				for j, v := range values {
					putBF16(m.Data[2*j:], v)
				}
				return m, nil
			}
			c.weights = append(c.weights, &q)
		}
		p.args[i] = &c
	}
	return &p
}

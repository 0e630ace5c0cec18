package kerneltest

import (
	"testing"

	"glmbatch/kernels"
)

// SameRows checks that the rows of a batch of d.M have the bits that they have
// in batches of other sizes: devices choose other kernels for many rows than for
// few. Nothing is compared with the reference, so that shapes may be large. Products are
// checked with rounded inputs too.
func SameRows(t *testing.T, open Open, k *kernels.Kernel, d kernels.Dims) {
	t.Helper()
	e := newExample(k, 0, d, 1, false)
	sameRows(t, open, e)
	if k.RoundInputs(&e.scalars); k.RoundsInputs(e.scalars) {
		sameRows(t, open, e)
	}
}

func sameRows(t *testing.T, open Open, e *example) {
	t.Helper()
	d := e.d
	b := opened(t, open(t, 1))
	whole := b.place(e, false).run()
	every := e.everyRow()
	for _, n := range []int{1, 5, 8, 9, 17, 33, 64, 65, 129} { // around the sizes of tiles
		if n > len(every) {
			break
		}
		idx := every[len(every)-n:]
		if err := e.same(whole, b.place(e.rows(idx), false).run(), idx); err != nil {
			t.Errorf("%+v: the last %d rows: %v", d, n, err)
		}
		every = every[:len(every)-n]
	}
	if len(every) > 0 {
		if err := e.same(whole, b.place(e.rows(every), true).run(), every); err != nil {
			t.Errorf("%+v: the first %d rows: %v", d, len(every), err)
		}
	}
}

const (
	manyRows  = 340
	manyFLOPs = 1 << 30 // with manyBytes: bounds the examples that are worth many rows
	manyBytes = 64 << 20
)

// testManyRows runs a kernel's examples with many rows.
func testManyRows(t *testing.T, open Open, k *kernels.Kernel) {
	for _, d := range k.Examples {
		if d = shrunk(d); d.M == 0 {
			continue
		}
		rows := int32(manyRows)
		if testing.Short() && k.Class == kernels.Sample {
			rows = shortSample
		}
		d.Ctx, d.M = d.Ctx/int64(d.M)*int64(rows), rows
		if c := k.Cost(d); c.FLOPs > manyFLOPs || c.HBM > manyBytes || long(k, d) {
			continue
		}
		SameRows(t, open, k, d)
	}
}

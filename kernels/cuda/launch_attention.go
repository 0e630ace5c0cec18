//go:build cuda

package cuda

import (
	"fmt"
	"math"
	"strings"
	"unsafe"

	"glmbatch/kernels"
)

func cacheWrite(d *device, c *kernels.Call, at uintptr) error {
	x := c.Dims
	f, _ := format(c.Kernel)
	a := rowsP{x: d.ptr(c.Args[0]), w: d.ptr(c.Args[1]), at: at, m: x.M, k: x.K, nrope: x.Rope, format: f, eps: c.Scalars[0]}
	o, rest := opKey, c.Args[2:]
	a.ldx = ld(c.Args[0], x.K)
	if strings.HasPrefix(string(c.Kernel), "latent") {
		o = opLatent
		a.ldx = ld(c.Args[0], x.K+x.Rope)
	} else {
		a.b, rest = d.ptr(c.Args[2]), c.Args[3:]
	}
	if x.K%4 != 0 || x.Rope%4 != 0 || x.K > 512 || x.Rope > 512 {
		return fmt.Errorf("%w: cache entries of %d and %d rotary values: multiples of 4, at most 512", kernels.ErrKernel, x.K, x.Rope)
	}
	a.rope, a.pos, a.idx, a.cache = d.ptr(rest[0]), d.ptr(rest[1]), d.ptr(rest[2]), d.ptr(rest[3])
	return d.rows(o, uint32(x.M), &a)
}

// pageRow is the row stride of a page table.
func pageRow(b kernels.Buffer) int32 {
	if b.Pitch != 0 {
		return b.Pitch / 4
	}
	return int32(b.Len / 4)
}

// indexShape is a block of index_logits: tiles of 16 positions a warp, warps, and
// how often a block has that many positions of its row; or, with many, of how many
// rows it has them.
type indexShape struct{ tiles, warps, span, many int32 }

func indexShapeOf(f string, rows, width int32) indexShape {
	switch {
	case f == "f32":
		return indexShape{1, 4, 1, 0}
	case rows >= 128:
		return indexShape{4, 4, 32, 1}
	case rows*width <= 98304:
		return indexShape{2, 4, 1, 0}
	case rows*width <= 262144:
		return indexShape{2, 4, 4, 0}
	}
	return indexShape{2, 4, 8, 0}
}

// Shared memory of the kernels of src/indexer_glm.cu, of index_pages by the cache's
// format; what a block costs before its first page or row, in those; and how many
// rows index_rows has at once, whose queries it has in scratch memory.
var indexPagesShared = map[string]uint32{"bf16": 214016, "fp8": 118784}

const (
	indexRowsShared = 82944
	indexQueries    = 2*64*128 + 128 // bytes of a row's
	indexStart      = 4
	indexLeast      = 2 // pages of a block: others' blocks find multiprocessors
	indexRows       = 2048
)

// span is how many of n a block has, at most most of them, so that what many of
// those make ends soonest.
func (d *device) indexSpan(many, n, most int32) (int32, error) {
	sms, _, err := d.chip()
	best, least := n, int64(math.MaxInt64)
	for chunks := int32(ceil(n, most)); chunks <= n && (chunks == 1 || int64(many)*int64(chunks) <= 32*int64(sms)); chunks++ {
		span := int32(ceil(n, chunks))
		waves := (int64(many)*int64(ceil(n, span)) + int64(sms) - 1) / int64(max(1, sms))
		if t := waves * int64(span+indexStart); t < least {
			best, least = span, t
		}
	}
	return min(best, most), err
}

func indexLogits(d *device, c *kernels.Call, at uintptr) error {
	x := c.Dims
	if x.K%32 != 0 || x.K > 128 || x.Rope > x.K || x.Rope%4 != 0 {
		return fmt.Errorf("%w: indexer keys of %d values, %d of them rotary: a multiple of 32, at most 128, and one of 4", kernels.ErrKernel, x.K, x.Rope)
	}
	_, f := format(c.Kernel)
	a := indexP{q: d.ptr(c.Args[0]), hw: d.ptr(c.Args[1]), rope: d.ptr(c.Args[2]), cache: d.ptr(c.Args[3]), pages: d.ptr(c.Args[4]), seq: d.ptr(c.Args[5]), pos: d.ptr(c.Args[6]), scores: d.ptr(c.Args[7]), at: at,
		m: x.M, k: x.K, heads: x.Heads, nrope: x.Rope, pagesLd: pageRow(c.Args[4]), ldq: ld(c.Args[0], x.Heads*x.K), ldhw: ld(c.Args[1], x.Heads), lds: ld(c.Args[7], x.N), scale: c.Scalars[0]}
	if d.warpgroups && f != "f32" && x.K == 128 && x.Heads <= 32 {
		return d.indexGLM(c, f, &a)
	}
	s := indexShapeOf(f, x.M, x.N)
	a.span = s.span
	tiles := 4 * ceil(x.Heads, 32)
	grid := [3]uint32{ceil(x.N, 16*s.tiles*s.warps*s.span), uint32(x.M), 1}
	if s.many == 1 {
		grid = [3]uint32{ceil(x.N, 16*s.tiles*s.warps), ceil(x.M, s.span), 1}
	}
	shared := uint32(1+s.many) * tiles * (uint32(x.K/32)*1024 + 32)
	return d.do(fmt.Sprintf("%s_%d_%d_%d", c.Kernel, s.tiles, s.warps, s.many), grid, uint32(32*s.warps), shared, unsafe.Pointer(&a))
}

// indexGLM launches src/indexer_glm.cu. Rows that are many of few sequences share
// what is read of the keys; it changes no bit.
func (d *device) indexGLM(c *kernels.Call, f string, a *indexP) (err error) {
	x := c.Dims
	if x.M < 128 || x.Ctx < 8*x.Slots {
		pages := int32(ceil(x.N, kernels.PageTokens))
		if a.span, err = d.indexSpan(x.M, pages, pages); err != nil {
			return err
		}
		a.span = max(a.span, indexLeast) // its warpgroups take a page each at once
		a.early = d.settled(c.Args[6])
		err = d.do("index_pages_"+f, [3]uint32{ceil(pages, a.span), uint32(x.M), 1}, 512, indexPagesShared[f], unsafe.Pointer(a))
		d.fresh.settle()
		return err
	}
	rows, blocks := min(x.M, indexRows), ceil(x.N, 512)
	a.split = d.work(scratchWork, int64(rows)*indexQueries)
	if a.span, err = d.indexSpan(int32(blocks), rows, 64); err != nil {
		return err
	}
	for m := int32(0); m < x.M; m += rows {
		b, at := *a, uintptr(m)*4
		b.m = min(rows, x.M-m)
		b.q, b.hw, b.seq, b.pos, b.scores = a.q+at*uintptr(a.ldq), a.hw+at*uintptr(a.ldhw), a.seq+at, a.pos+at, a.scores+at*uintptr(a.lds)
		if err = d.do("index_split_"+f, [3]uint32{uint32(b.m), 1, 1}, 256, 0, unsafe.Pointer(&b)); err != nil {
			return err
		}
		if err = d.do("index_rows_"+f, [3]uint32{blocks, ceil(b.m, b.span), 1}, 384, indexRowsShared, unsafe.Pointer(&b)); err != nil {
			return err
		}
	}
	d.fresh.settle()
	return nil
}

func kvCast(d *device, c *kernels.Call, at uintptr) error {
	x := c.Dims
	entry, wide := int64(kernels.LatentEntry(kernels.FP8, int(x.K), int(x.Rope))), int64(x.K+x.Rope)
	if wide%8 != 0 || c.Args[0].Len/entry < x.Slots || c.Args[1].Len/(2*wide) < x.Slots {
		return fmt.Errorf("%w: %d entries of %d values do not fit %d and %d bytes", kernels.ErrKernel, x.Slots, wide, c.Args[0].Len, c.Args[1].Len)
	}
	a := castP{cache: d.ptr(c.Args[0]), out: d.ptr(c.Args[1]), at: at, slots: x.Slots, k: x.K, nrope: x.Rope}
	blocks := min((x.Slots*wide/8+255)/256, 132*8) // as many as run at once: each stamps the call's end
	return d.do("kv_cast", [3]uint32{uint32(blocks), 1, 1}, 256, 0, unsafe.Pointer(&a))
}

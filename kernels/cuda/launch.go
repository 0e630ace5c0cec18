//go:build cuda

package cuda

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda/driver"
)

// launcher enqueues one call; at is where its stamps go, 0 for nowhere.
type launcher func(d *device, c *kernels.Call, at uintptr) error

// launchers has an entry for every row of the table; a test loops over it.
var launchers = map[kernels.Name]launcher{
	"embed_f32": embedRows, "embed_bf16": embedRows,
	"rms_norm": rmsNorm, "add_norm": addNorm, "all_reduce_norm": allReduceNorm, "all_gather": allGather,
	"gemm_f32": gemm, "gemm_bf16": gemm, "gemm_fp8": gemm, "gemm_fp4": gemm, "gemm_fp4a4": gemmQuant, "gemm_fp4a8": gemmQuant,
	"q_absorb_f32": gemm, "q_absorb_bf16": gemm, "v_up_f32": gemm, "v_up_bf16": gemm,
	"latent_write_f32": cacheWrite, "latent_write_bf16": cacheWrite, "latent_write_fp8": cacheWrite,
	"index_write_f32": cacheWrite, "index_write_bf16": cacheWrite, "index_write_fp8": cacheWrite,
	"index_rope":       indexRope,
	"index_logits_f32": indexLogits, "index_logits_bf16": indexLogits, "index_logits_fp8": indexLogits, "index_topk": indexTopK,
	"mla_attend_f32": attend, "mla_attend_bf16": attend, "mla_attend_fp8": attend,
	"kv_cast_fp8": kvCast,
	"silu_mul":    siluMul, "moe_route": route,
	"moe_up_f32": moeUp, "moe_up_bf16": moeUp, "moe_up_fp4": moeUp, "moe_up_fp4a4": moeUp, "moe_up_fp4a8": moeUp,
	"moe_down_f32": moeDown, "moe_down_bf16": moeDown, "moe_down_fp4": moeDown, "moe_down_fp4a4": moeDown, "moe_down_fp4a8": moeDown,
	"gather_rows": gatherRows, "sample": sample,
}

func (d *device) ptr(b kernels.Buffer) uintptr {
	if b.Index == 0 {
		return 0
	}
	return d.bufs[b.Index-1].ptr + uintptr(b.Offset)
}

func (d *device) weight(b kernels.Buffer) (*weight, uintptr) {
	x := &d.bufs[b.Index-1]
	return x.w, x.ptr
}

// ld is the row stride of b in values: its pitch, or columns where it is dense.
func ld(b kernels.Buffer, columns int32) int32 {
	if b.Pitch != 0 {
		return b.Pitch / 4
	}
	return columns
}

func ceil(n, by int32) uint32 { return uint32((n + by - 1) / by) }

// format is a cache's number format as the kernels count them.
func format(n kernels.Name) (int32, string) {
	s := string(n)
	f := s[strings.LastIndexByte(s, '_')+1:]
	return map[string]int32{"f32": 0, "bf16": 1, "fp8": 2}[f], f
}

func embedRows(d *device, c *kernels.Call, at uintptr) error {
	w, p := d.weight(c.Args[0])
	f := int32(0)
	if w.format == kernels.BF16 {
		f = 1
	}
	a := rowsP{cache: p, idx: d.ptr(c.Args[1]), y: d.ptr(c.Args[2]), at: at, m: c.Dims.M, n: c.Dims.N, ldy: ld(c.Args[2], c.Dims.N), format: f}
	return d.do("embed", [3]uint32{uint32(a.m), 1, 1}, 256, 0, unsafe.Pointer(&a))
}

func rmsNorm(d *device, c *kernels.Call, at uintptr) error {
	x := c.Dims
	a := rowsP{x: d.ptr(c.Args[0]), w: d.ptr(c.Args[1]), y: d.ptr(c.Args[2]), at: at, m: x.M, k: x.K, ldx: ld(c.Args[0], x.K), ldy: ld(c.Args[2], x.K), eps: c.Scalars[0]}
	return d.do("rms_norm", [3]uint32{uint32(a.m), 1, 1}, 512, 0, unsafe.Pointer(&a))
}

func addNormParams(d *device, c *kernels.Call, at uintptr) rowsP {
	n := c.Dims.N
	return rowsP{x: d.ptr(c.Args[0]), res: d.ptr(c.Args[1]), w: d.ptr(c.Args[2]), y: d.ptr(c.Args[3]), at: at, m: c.Dims.M, n: n,
		ldx: ld(c.Args[0], n), ldr: ld(c.Args[1], n), ldy: ld(c.Args[3], n), eps: c.Scalars[0]}
}

func addNorm(d *device, c *kernels.Call, at uintptr) error {
	if c.Dims.N > 8192 {
		return fmt.Errorf("%w: rows of %d values, at most 8192", kernels.ErrKernel, c.Dims.N)
	}
	a := addNormParams(d, c, at)
	return d.do("add_norm", [3]uint32{uint32(a.m), 1, 1}, 1024, 0, unsafe.Pointer(&a))
}

func allReduceNorm(d *device, c *kernels.Call, at uintptr) error {
	if len(d.group.ranks) == 1 {
		return addNorm(d, c, at)
	}
	a := addNormParams(d, c, at)
	var err error
	if a.parts, err = d.peers(c.Args[0]); err != nil {
		return err
	}
	a.ranks = int32(len(d.group.ranks))
	return errors.Join(d.barrier(at), d.do("add_norm", [3]uint32{uint32(a.m), 1, 1}, 1024, 0, unsafe.Pointer(&a)), d.barrier(at))
}

func allGather(d *device, c *kernels.Call, at uintptr) error {
	n := int32(len(d.group.ranks))
	a := rowsP{y: d.ptr(c.Args[1]), at: at, m: c.Dims.M, n: c.Dims.N, ldx: ld(c.Args[0], c.Dims.N/n), ldy: ld(c.Args[1], c.Dims.N), ranks: n}
	if c.Dims.N%n != 0 {
		return fmt.Errorf("%w: %d columns on %d ranks", kernels.ErrKernel, c.Dims.N, n)
	}
	var err error
	if a.parts, err = d.peers(c.Args[0]); err != nil {
		return err
	}
	run := func() error {
		return d.do("all_gather", [3]uint32{ceil(a.n, 1024), uint32(a.m), 1}, 256, 0, unsafe.Pointer(&a))
	}
	if n == 1 {
		return run()
	}
	return errors.Join(d.barrier(at), run(), d.barrier(at))
}

// barrier waits until every rank has come as far.
func (d *device) barrier(at uintptr) error {
	a := barrierP{arrived: d.group.arrived, epoch: d.epoch, failed: d.epoch + 8, at: at, limit: uint64(d.group.options.StepTimeout), ranks: int32(len(d.group.ranks))}
	return d.do("barrier", [3]uint32{1, 1, 1}, 32, 0, unsafe.Pointer(&a))
}

// peers returns a device array of every rank's address of b.
func (d *device) peers(b kernels.Buffer) (uintptr, error) {
	k := fmt.Sprintf("%d+%d", b.Index, b.Offset)
	if t, ok := d.tables[k]; ok {
		return t, nil
	}
	var ps []byte
	for _, r := range d.group.ranks {
		ps = binary.LittleEndian.AppendUint64(ps, uint64(r.bufs[b.Index-1].ptr)+uint64(b.Offset))
	}
	t, err := d.malloc(int64(len(ps)))
	if err != nil {
		return 0, err
	}
	d.tables[k] = t
	return t, d.copyIn(t, ps)
}

// gemm covers every product with one weight a head: gemm, q_absorb, v_up.
func gemm(d *device, c *kernels.Call, at uintptr) error {
	w, p := d.weight(c.Args[0])
	x := c.Dims
	a := gemmP{w: p, scales: w.scales, at: at, m: x.M, n: x.N, k: x.K, global: w.global, globalUp: w.globalUp, heads: max(1, x.Heads), whead: w.each}
	in, out := c.Args[1], c.Args[len(c.Args)-1]
	a.x, a.y = d.ptr(in), d.ptr(out)
	extra := uint32(0)
	if len(c.Args) == 5 { // q_absorb
		a.rope, a.pos, a.nrope = d.ptr(c.Args[2]), d.ptr(c.Args[3]), x.Rope
		extra = 1
	}
	a.xhead, a.yhead = x.K+x.Rope, x.N+x.Rope
	if x.Heads == 0 {
		a.xhead, a.yhead = x.K, x.N
	}
	a.ldx, a.ldy = ld(in, a.heads*a.xhead), ld(out, a.heads*a.yhead)
	if int(a.heads) > w.count || w.rows != int(x.N) || w.cols != int(x.K) {
		return fmt.Errorf("%w: %d heads of %dx%d with weights %dx%dx%d", kernels.ErrKernel, a.heads, x.N, x.K, w.count, w.rows, w.cols)
	}
	switch w.format {
	case kernels.F32:
		return d.do("gemm_f32", [3]uint32{ceil(x.N, 8) + extra, ceil(x.M, 8), uint32(a.heads)}, 256, 0, unsafe.Pointer(&a))
	case kernels.FP4:
		tokens, name := int32(8), "gemm_fp4_8"
		if x.M > 8 {
			tokens, name = 64, "gemm_fp4_64"
		}
		return d.do(name, [3]uint32{uint32(w.tiles), ceil(x.M, tokens), 1}, 256, 0, unsafe.Pointer(&a))
	}
	tiles, blocks := int32(1), int32(1) // of 8 tokens in a block; blocks that share an output tile
	for tiles < 8 && x.M > 8*tiles {
		tiles *= 2
	}
	if extra == 0 {
		blocks = clusterOf(int32(w.tiles)*a.heads, int32(w.kt))
	}
	name := fmt.Sprintf("gemm_bf16_%d_%d", tiles, blocks)
	return d.do(name, [3]uint32{uint32(w.tiles)*uint32(blocks) + extra, ceil(x.M, 8*tiles), uint32(a.heads)}, 256, 0, unsafe.Pointer(&a))
}

// clusterOf is how many blocks share an output tile's k: enough blocks to fill the
// GPU with at least three fragments a warp. It follows from the weight's shape alone.
func clusterOf(tiles, kt int32) int32 {
	c := int32(1)
	for c < 8 && tiles*c*2 <= 528 && kt >= 3*8*c*2 {
		c *= 2
	}
	return c
}

// quantised returns activations as 4- or 8-bit kernels see them, a row a pair.
func (d *device) quantised(w *weight, x, experts uintptr, a4 bool, pairs, k, topk, ldx, byPair int32, at uintptr, region int64) (uintptr, error) {
	q := quantP{x: x, experts: experts, at: at, pairs: pairs, k: k, topk: topk, ldx: ldx, byPair: byPair}
	q.y = d.work(scratchWork, region+int64(pairs)*int64(k)*4) + uintptr(region)
	if a4 {
		q.input = w.ins
	}
	return q.y, d.do("quant_pairs", [3]uint32{ceil(pairs*(k/16), 256), 1, 1}, 256, 0, unsafe.Pointer(&q))
}

func gemmQuant(d *device, c *kernels.Call, at uintptr) error {
	w, _ := d.weight(c.Args[0])
	x := c.Dims
	zero, err := d.zeros(x.M)
	if err != nil {
		return err
	}
	y, err := d.quantised(w, d.ptr(c.Args[1]), zero, c.Kernel == "gemm_fp4a4", x.M, x.K, 1, ld(c.Args[1], x.K), 1, at, 0)
	if err != nil {
		return err
	}
	_, p := d.weight(c.Args[0])
	a := gemmP{w: p, scales: w.scales, x: y, y: d.ptr(c.Args[2]), at: at, m: x.M, n: x.N, k: x.K, ldx: x.K, ldy: ld(c.Args[2], x.N), global: w.global, globalUp: w.globalUp, heads: 1}
	tokens, name := int32(8), "gemm_fp4_8"
	if x.M > 8 {
		tokens, name = 64, "gemm_fp4_64"
	}
	return d.do(name, [3]uint32{uint32(w.tiles), ceil(x.M, tokens), 1}, 256, 0, unsafe.Pointer(&a))
}

// zeros is an array of n expert numbers for weights without experts.
func (d *device) zeros(n int32) (uintptr, error) {
	k := fmt.Sprintf("zeros %d", n)
	if t, ok := d.tables[k]; ok {
		return t, nil
	}
	t, err := d.malloc(int64(n) * 4)
	if err != nil {
		return 0, err
	}
	d.tables[k] = t
	return t, driver.Set(t, 0, int64(n)*4, d.stream)
}

func cacheWrite(d *device, c *kernels.Call, at uintptr) error {
	x := c.Dims
	f, _ := format(c.Kernel)
	a := rowsP{x: d.ptr(c.Args[0]), w: d.ptr(c.Args[1]), at: at, m: x.M, k: x.K, nrope: x.Rope, format: f, eps: c.Scalars[0]}
	name, rest := "index_write", c.Args[2:]
	a.ldx = ld(c.Args[0], x.K)
	if strings.HasPrefix(string(c.Kernel), "latent") {
		name = "latent_write"
		a.ldx = ld(c.Args[0], x.K+x.Rope)
	} else {
		a.b, rest = d.ptr(c.Args[2]), c.Args[3:]
	}
	a.rope, a.pos, a.idx, a.cache = d.ptr(rest[0]), d.ptr(rest[1]), d.ptr(rest[2]), d.ptr(rest[3])
	return d.do(name, [3]uint32{uint32(a.m), 1, 1}, 128, uint32(x.K)*4, unsafe.Pointer(&a))
}

func indexRope(d *device, c *kernels.Call, at uintptr) error {
	x := c.Dims
	a := rowsP{y: d.ptr(c.Args[0]), rope: d.ptr(c.Args[1]), pos: d.ptr(c.Args[2]), at: at, m: x.M, k: x.K, heads: x.Heads, nrope: x.Rope, ldy: ld(c.Args[0], x.Heads*x.K)}
	return d.do("index_rope", [3]uint32{uint32(a.m), 1, 1}, 256, 0, unsafe.Pointer(&a))
}

// pageRow is the row stride of a page table.
func pageRow(b kernels.Buffer) int32 {
	if b.Pitch != 0 {
		return b.Pitch / 4
	}
	return int32(b.Len / 4)
}

func indexLogits(d *device, c *kernels.Call, at uintptr) error {
	x := c.Dims
	if x.K%32 != 0 || x.K > 128 {
		return fmt.Errorf("%w: indexer keys of %d values: a multiple of 32, at most 128", kernels.ErrKernel, x.K)
	}
	a := indexP{q: d.ptr(c.Args[0]), hw: d.ptr(c.Args[1]), cache: d.ptr(c.Args[2]), pages: d.ptr(c.Args[3]), seq: d.ptr(c.Args[4]), pos: d.ptr(c.Args[5]), scores: d.ptr(c.Args[6]), at: at,
		m: x.M, n: x.N, k: x.K, heads: x.Heads, topk: x.TopK, pagesLd: pageRow(c.Args[3]), ldq: ld(c.Args[0], x.Heads*x.K), ldhw: ld(c.Args[1], x.Heads), lds: ld(c.Args[6], x.N), scale: c.Scalars[0]}
	tiles := ceil(x.Heads, 8)
	return d.do(string(c.Kernel), [3]uint32{ceil(x.N, 128), uint32(x.M), 1}, 256, tiles*uint32(x.K/32)*1024+tiles*32, unsafe.Pointer(&a))
}

func indexTopK(d *device, c *kernels.Call, at uintptr) error {
	x := c.Dims
	a := indexP{scores: d.ptr(c.Args[0]), pos: d.ptr(c.Args[1]), sel: d.ptr(c.Args[2]), at: at, m: x.M, n: x.N, topk: x.TopK, lds: ld(c.Args[0], x.N)}
	return d.do("index_topk", [3]uint32{uint32(x.M), 1, 1}, 1024, 0, unsafe.Pointer(&a))
}

// attendRows bounds the rows whose splits are in scratch memory at once; attendTile
// is the positions of a split, as in src/attend.cu.
const (
	attendRows = 256
	attendTile = 32
)

func attend(d *device, c *kernels.Call, at uintptr) error {
	x := c.Dims
	_, f := format(c.Kernel)
	if x.K%16 != 0 || x.Rope%16 != 0 {
		return fmt.Errorf("%w: latents of %d+%d values: multiples of 16", kernels.ErrKernel, x.K, x.Rope)
	}
	a := attendP{cache: d.ptr(c.Args[1]), pages: d.ptr(c.Args[2]), at: at, k: x.K, nrope: x.Rope, heads: x.Heads, pagesLd: pageRow(c.Args[2]),
		ldq: ld(c.Args[0], x.Heads*(x.K+x.Rope)), ldy: ld(c.Args[6], x.Heads*x.K), scale: c.Scalars[0]}
	reach := a.pagesLd * kernels.PageTokens // positions a row can attend to
	if x.TopK > 0 {
		a.topk, reach = x.TopK, x.TopK
	} else if x.N > 0 {
		reach = min(reach, x.N)
	}
	a.splits = int32(ceil(reach, attendTile))
	rows := min(x.M, attendRows)
	a.part = d.work(scratchWork, int64(rows)*int64(a.splits)*int64(x.Heads)*int64(x.K+2)*4)
	blocks, width := (x.K+127)/128, x.K+x.Rope
	const t = attendTile
	shared := uint32(t*(width+8)*2 + 4*t*8*4 + 8*(t+8)*4 + t*blocks*4 + t*4)
	if f == "f32" {
		shared = uint32(t*(width+1)*4 + 8*t*4 + t*4)
	}
	for m := int32(0); m < x.M; m += rows {
		a.m = min(rows, x.M-m)
		off := uintptr(m) * 4
		a.q, a.y = d.ptr(c.Args[0])+off*uintptr(a.ldq), d.ptr(c.Args[6])+off*uintptr(a.ldy)
		a.seq, a.pos = d.ptr(c.Args[3])+off, d.ptr(c.Args[4])+off
		if x.TopK > 0 {
			a.sel = d.ptr(c.Args[5]) + off*uintptr(x.TopK)
		}
		if err := d.do("mla_attend_"+f, [3]uint32{uint32(a.splits), uint32(a.m), ceil(x.Heads, 8)}, 256, shared, unsafe.Pointer(&a)); err != nil {
			return err
		}
		if err := d.do("mla_combine", [3]uint32{uint32(x.Heads), ceil(x.K, 64), uint32(a.m)}, 256, uint32(a.splits)*4, unsafe.Pointer(&a)); err != nil {
			return err
		}
	}
	return nil
}

func siluMul(d *device, c *kernels.Call, at uintptr) error {
	x := c.Dims
	a := rowsP{x: d.ptr(c.Args[0]), y: d.ptr(c.Args[1]), at: at, m: x.M, n: x.N, ldx: ld(c.Args[0], 2*x.N), ldy: ld(c.Args[1], x.N)}
	return d.do("silu_mul", [3]uint32{ceil(x.N, 256), uint32(x.M), 1}, 256, 0, unsafe.Pointer(&a))
}

func route(d *device, c *kernels.Call, at uintptr) error {
	x, s := c.Dims, c.Scalars
	if x.TopK > 64 || s[1] > 64 || x.Groups > 4096 {
		return fmt.Errorf("%w: %d of %d experts in %v groups", kernels.ErrKernel, x.TopK, x.Groups, s[1])
	}
	d.grouped = kernels.Buffer{}
	a := rowsP{x: d.ptr(c.Args[0]), b: d.ptr(c.Args[1]), experts: d.ptr(c.Args[2]), weights: d.ptr(c.Args[3]), at: at, m: x.M, topk: x.TopK, groups: x.Groups,
		ldx: ld(c.Args[0], x.Groups), ldr: ld(c.Args[3], x.TopK), scale: s[0], nGroup: int32(s[1]), topkGroup: int32(s[2]), norm: int32(s[3])}
	return d.do("moe_route", [3]uint32{uint32(x.M), 1, 1}, 32, uint32(x.Groups)*8, unsafe.Pointer(&a))
}

// directPairs is how many (token, choice) pairs are worth a group each.
const directPairs = 64

// byExpert orders the pairs by expert, once for moe_up and moe_down.
func (d *device) byExpert(a *moeP, experts kernels.Buffer, at uintptr) error {
	pairs := a.m * a.topk
	a.list = d.work(scratchLists, int64(pairs+a.groups+1)*4)
	a.offsets = a.list + uintptr(pairs)*4
	if d.grouped == experts {
		return nil
	}
	d.grouped = experts
	g := groupP{experts: a.experts, list: a.list, offsets: a.offsets, at: at, pairs: pairs, groups: a.groups}
	return d.do("moe_group", [3]uint32{1, 1, 1}, 1024, uint32(2*a.groups+1)*4, unsafe.Pointer(&g))
}

func moeParams(d *device, c *kernels.Call, at uintptr) (moeP, *weight, string) {
	w, p := d.weight(c.Args[0])
	x := c.Dims
	a := moeP{w: p, scales: w.scales, x: d.ptr(c.Args[1]), experts: d.ptr(c.Args[2]), at: at, m: x.M, n: x.N, k: x.K, topk: x.TopK, groups: int32(w.count),
		ldx: ld(c.Args[1], x.K), wexpert: w.each, sexpert: w.eachScales}
	if w.format == kernels.FP4 {
		a.global = w.globals
	}
	return a, w, string(w.format)
}

func moeUp(d *device, call *kernels.Call, at uintptr) (err error) {
	a, w, f := moeParams(d, call, at)
	a.y = d.ptr(call.Args[3])
	pairs := a.m * a.topk
	if a.n%16 != 0 {
		return fmt.Errorf("%w: experts of %d values a rank: a multiple of 16", kernels.ErrKernel, a.n)
	}
	if q := call.Kernel == "moe_up_fp4a4"; q || call.Kernel == "moe_up_fp4a8" {
		if a.x, err = d.quantised(w, a.x, a.experts, q, pairs, a.k, a.topk, a.ldx, 0, at, 0); err != nil {
			return err
		}
		a.ldx, a.byPair = a.k, 1
	}
	if f == "f32" {
		return d.do("moe_up_f32", [3]uint32{ceil(a.n, 8), uint32(pairs), 1}, 256, 0, unsafe.Pointer(&a))
	}
	c := int32(1) // blocks that share k
	if w.kt >= 3*8*2 {
		c = 2
	}
	tiles := ceil(a.n, 16) * uint32(c)
	if pairs <= directPairs {
		return d.do(fmt.Sprintf("moe_up_%s_8_%d", f, c), [3]uint32{tiles, uint32(pairs), 1}, 256, 0, unsafe.Pointer(&a))
	}
	if err := d.byExpert(&a, call.Args[2], at); err != nil {
		return err
	}
	tokens := 8
	if pairs > 8*a.groups {
		tokens = 32
	}
	return d.do(fmt.Sprintf("moe_up_%s_%d_%d", f, tokens, c), [3]uint32{tiles, uint32(a.groups), 1}, 256, 0, unsafe.Pointer(&a))
}

func moeDown(d *device, c *kernels.Call, at uintptr) (err error) {
	a, w, f := moeParams(d, c, at)
	a.weights, a.y, a.ldy, a.ldw = d.ptr(c.Args[3]), d.ptr(c.Args[4]), ld(c.Args[4], c.Dims.N), ld(c.Args[3], c.Dims.TopK)
	pairs := a.m * a.topk
	scratch := int64(0)
	if pairs > directPairs {
		scratch = int64(pairs) * int64(a.n) * 4
	}
	if q := c.Kernel == "moe_down_fp4a4"; q || c.Kernel == "moe_down_fp4a8" {
		if a.x, err = d.quantised(w, a.x, a.experts, q, pairs, a.k, a.topk, a.ldx, 1, at, scratch); err != nil {
			return err
		}
		a.ldx = a.k
	}
	if f == "f32" {
		return d.do("moe_down_f32", [3]uint32{ceil(a.n, 8), uint32(a.m), 1}, 256, 0, unsafe.Pointer(&a))
	}
	if pairs <= directPairs {
		return d.do("moe_down_"+f, [3]uint32{ceil(a.n, 16), uint32(a.m), 1}, 256, uint32(a.topk)*64, unsafe.Pointer(&a))
	}
	if err := d.byExpert(&a, c.Args[2], at); err != nil {
		return err
	}
	a.scratch = d.work(scratchWork, scratch)
	name := "moe_down_" + f + "_8"
	if pairs > 8*a.groups {
		name = "moe_down_" + f + "_32"
	}
	if err := d.do(name, [3]uint32{ceil(a.n, 128), uint32(a.groups), 1}, 256, 0, unsafe.Pointer(&a)); err != nil {
		return err
	}
	return d.do("moe_combine", [3]uint32{ceil(a.n, 256), uint32(a.m), 1}, 256, 0, unsafe.Pointer(&a))
}

func kvCast(d *device, c *kernels.Call, at uintptr) error {
	x := c.Dims
	entry, wide := int64(kernels.LatentEntry(kernels.FP8, int(x.K), int(x.Rope))), int64(x.K+x.Rope)
	if wide%8 != 0 || c.Args[0].Len/entry < x.Slots || c.Args[1].Len/(2*wide) < x.Slots {
		return fmt.Errorf("%w: %d entries of %d values do not fit %d and %d bytes", kernels.ErrKernel, x.Slots, wide, c.Args[0].Len, c.Args[1].Len)
	}
	a := castP{cache: d.ptr(c.Args[0]), out: d.ptr(c.Args[1]), at: at, slots: x.Slots, k: x.K, nrope: x.Rope}
	blocks := min((x.Slots*wide/8+255)/256, 1<<16)
	return d.do("kv_cast", [3]uint32{uint32(blocks), 1, 1}, 256, 0, unsafe.Pointer(&a))
}

func gatherRows(d *device, c *kernels.Call, at uintptr) error {
	x := c.Dims
	a := rowsP{x: d.ptr(c.Args[0]), idx: d.ptr(c.Args[1]), y: d.ptr(c.Args[2]), at: at, m: x.M, n: x.N, ldx: ld(c.Args[0], x.N), ldy: ld(c.Args[2], x.N)}
	return d.do("gather_rows", [3]uint32{uint32(x.M), 1, 1}, 256, 0, unsafe.Pointer(&a))
}

func sample(d *device, c *kernels.Call, at uintptr) error {
	x := c.Dims
	n := x.N
	if x.TopK > 0 {
		n = min(n, x.TopK)
	}
	a := sampleP{logits: d.ptr(c.Args[0]), params: d.ptr(c.Args[1]), seen: d.ptr(c.Args[2]), y: d.ptr(c.Args[3]), at: at, n: n, ld: ld(c.Args[0], x.N), seenBytes: c.Args[2].Pitch}
	if a.seenBytes == 0 {
		a.seenBytes = (x.N + 63) / 64 * 8
	}
	a.work = d.work(scratchWork, int64(x.M)*int64(n)*4)
	return d.do("sample", [3]uint32{uint32(x.M), 1, 1}, 1024, 0, unsafe.Pointer(&a))
}

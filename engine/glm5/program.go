package glm5

import (
	"glmbatch/kernels"
)

// Program returns the calls of one step, in order, for every rank. Token ids,
// positions, page tables and all else that is the batch's contents are read
// from buffers, so steps of one shape have the same calls but for the costs'
// dimensions. The slice is valid until kernels.MaxAhead more programs are made.
func (m *Model) Program(b *Batch) []kernels.Call {
	p := m.begin(b)
	p.feed(b)
	p.copies(b)
	p.embed()
	p.norm(m.buf.x, m.w.layers[0].attnNorm, m.buf.h)
	for i := range m.Config.Layers {
		next := m.w.norm
		if i+1 < m.Config.Layers {
			next = m.w.layers[i+1].attnNorm
		}
		p.decoder(i, next)
	}
	p.head()
	p.predict(b)
	return p.calls
}

// program builds lists of calls in memory that it keeps.
type program struct {
	m     *Model
	calls []kernels.Call
	args  []kernels.Buffer
	layer int16

	at     rows    // that calls work on
	rows   int32   // of them, those without one among them
	own    bool    // calls work on the ranks' own rows
	cut    cut     // of the batch
	logits int32   // rows of logits
	short  block   // rows that attend to everything
	long   block   // rows that attend to a selection
	scored []block // long, in blocks whose scores fit their buffer
	met    met     // what MLPs and experts work on
	tips   Batch   // scratch of predict

	steering int64 // bits that each token has in bitmaps, masks and counts of the rows of logits
}

// rows is where rows of tokens are: their inputs, and what differs between a step's rows
// and those that the prediction layer goes on with.
type rows struct {
	tokens, pos, seq, slots kernels.Buffer
	x, front                kernels.Buffer
}

// met is the rows of all ranks, and what MLPs read of them.
type met struct {
	rows int32
	h    kernels.Buffer
}

func (m *Model) begin(b *Batch) *program {
	p := &m.program[m.made%len(m.program)]
	m.made++
	p.m = m
	p.calls, p.args, p.layer = p.calls[:0], p.args[:0], -1
	a := &m.buf
	p.at = rows{tokens: a.tokens, pos: a.pos, seq: a.seq, slots: a.slots, x: a.x, front: a.front}
	p.blocks(b)
	p.own, p.logits, p.steering = m.apart, int32(p.cut.logits), 0
	for _, s := range p.cut.shares {
		p.steering = max(p.steering, steering(b.Params[s.logits:s.last]))
	}
	return p
}

// blocks sets the rows to a batch's.
func (p *program) blocks(b *Batch) {
	m, c := p.m, &p.cut
	topK := m.Config.IndexTopK
	m.cut(b, c)
	p.scored = p.scored[:0]
	p.rows, p.met = int32(c.rows), met{int32(c.rows), m.buf.h}
	if m.apart {
		p.met = met{int32(c.all) * m.shards / m.ranks, m.buf.met}
	}
	p.short = c.measure(b, 0, c.short, topK)
	p.long = c.measure(b, c.short, c.rows, topK)
	p.long.width = m.o.scoreWidth(p.long.width)
	for from := c.short; from < c.rows; {
		to := min(c.rows, from+int(maxScores/4/p.long.width))
		k := c.measure(b, from, to, topK)
		k.width = p.long.width
		p.scored = append(p.scored, k)
		from = to
	}
}

// steering is how many bits a token has in what rows of logits are steered by.
func steering(params []kernels.SampleParams) (bits int64) {
	for i := range params {
		p := &params[i]
		for _, row := range []int32{p.Seen, p.Mask, p.Allowed} {
			if row >= 0 {
				bits++
			}
		}
		if p.Counts >= 0 {
			bits += 16
		}
	}
	return bits
}

// call appends one call.
func (p *program) call(k kernels.Name, replicated bool, d kernels.Dims, scalar float32, args ...kernels.Buffer) {
	p.callWith(k, replicated, d, [4]float32{scalar}, args...)
}

func (p *program) callWith(k kernels.Name, replicated bool, d kernels.Dims, scalars [4]float32,
	args ...kernels.Buffer) {
	n := len(p.args)
	p.args = append(p.args, args...)
	p.calls = append(p.calls, kernels.Call{
		Kernel: k, Layer: p.layer, Replicated: replicated && !p.own, Dims: d,
		Args: p.args[n:len(p.args):len(p.args)], Scalars: scalars,
	})
}

// decoder is one layer: h -> attention -> x, h -> MLP or experts -> x, and h for
// whoever comes next.
func (p *program) decoder(i int, next kernels.Buffer) {
	p.layer = int16(i)
	l := &p.m.w.layers[i]
	p.gemm(&l.front, p.rows, p.m.buf.h, p.at.front)
	p.attention(l, true)
	p.mixed(l, next)
	p.layer = -1
}

// mixed is what comes behind a layer's attention.
func (p *program) mixed(l *layer, next kernels.Buffer) {
	p.meet(l.mlpNorm)
	if l.experts != nil {
		p.mixture(l.experts)
	} else {
		p.mlp(&l.mlp)
	}
	p.part(next)
}

// feed makes the inputs of rows whose tokens the host does not know yet.
func (p *program) feed(b *Batch) {
	if len(b.From) == 0 {
		return
	}
	a := &p.m.buf
	p.call("feed", true, kernels.Dims{M: p.logits, N: int32(p.m.Config.Vocab)}, 0,
		a.sampled, a.from, a.logitRows, a.tokens, a.pos, a.seq, a.slots, a.pages, a.params, a.seen, a.counts)
}

// copies makes pages of the caches the same as others, in all layers.
func (p *program) copies(b *Batch) {
	c := p.m.cache
	for i := 0; i+1 < len(b.Copies); i += 2 {
		for layer := range c.latent {
			p.layer = int16(layer)
			for _, k := range []kernels.Buffer{c.latent[layer], c.index[layer]} {
				if k.Index == 0 {
					continue
				}
				bytes := k.Len / int64(p.m.o.pages())
				p.call("gather_rows", true, kernels.Dims{M: 1, N: int32(bytes / 4)}, 0,
					k.Slice(int64(b.Copies[i])*bytes, bytes), p.m.buf.zero, k.Slice(int64(b.Copies[i+1])*bytes, bytes))
			}
		}
	}
	p.layer = -1
}

func (p *program) embed() {
	m := p.m
	p.call(m.w.embed.kernel, true, kernels.Dims{M: p.rows, N: int32(m.Config.Hidden)}, 0, m.w.embed.buf,
		p.at.tokens, p.at.x)
}

func (p *program) norm(x, w, y kernels.Buffer) {
	c := &p.m.Config
	p.call("rms_norm", true, kernels.Dims{M: p.rows, K: int32(c.Hidden)}, c.NormEps, x, w, y)
}

// gemm is y = x Wᵀ, a call for each part of the weight. x and y begin at the
// first of rows.
func (p *program) gemm(w *linear, rows int32, x, y kernels.Buffer) {
	for _, t := range w.parts {
		out := y
		if len(w.parts) > 1 {
			out = y.Columns(t.col, t.rows, w.rows)
		}
		p.call(t.kernel, w.replicated, kernels.Dims{M: rows, N: int32(t.rows), K: int32(w.cols)},
			p.m.exact, t.buf, x, out)
	}
}

// attention leaves each rank's part of the attention's output in part. write: the rows'
// entries are not in the caches yet.
func (p *program) attention(l *layer, write bool) {
	c, a := &p.m.Config, &p.m.buf
	f := p.front(l)
	p.call("rms_norm", true, kernels.Dims{M: p.rows, K: int32(c.QLoRA)}, c.LatentEps, f.query, l.queryNorm, a.qr)
	p.gemm(&l.queryUp, p.rows, a.qr, a.q)
	if write {
		p.writeLatent(l, f.latent)
	}
	p.absorb(l)
	if l.index != nil {
		if write {
			p.writeIndex(l.index, f.key)
		}
		for _, k := range p.scored {
			p.choose(l.index, f.headWeights, k)
		}
	}
	p.attend(l, p.short, 0)
	p.attend(l, p.long, int32(c.IndexTopK))
	p.valuesUp(l)
	p.gemm(&l.out, p.rows, a.values, a.part)
}

// front is what a layer computes from its input first, in columns of one buffer.
type front struct{ query, latent, key, headWeights kernels.Buffer }

func (p *program) front(l *layer) front {
	c, w := &p.m.Config, l.front.rows
	at := func(col, n int) kernels.Buffer { return p.at.front.Columns(col, n, w) }
	latent := c.KVLoRA + c.QKRope
	f := front{query: at(0, c.QLoRA), latent: at(c.QLoRA, latent)}
	if l.index != nil {
		f.key = at(c.QLoRA+latent, c.IndexHeadDim)
		f.headWeights = at(c.QLoRA+latent+c.IndexHeadDim, c.IndexHeads)
	}
	return f
}

func (p *program) writeLatent(l *layer, x kernels.Buffer) {
	m, c := p.m, &p.m.Config
	p.call(m.names.latentWrite, true, kernels.Dims{M: p.rows, K: int32(c.KVLoRA), Rope: int32(c.QKRope)}, c.LatentEps,
		x, l.latentNorm, m.w.rope, p.at.pos, p.at.slots, l.latentCache)
}

func (p *program) writeIndex(l *indexer, x kernels.Buffer) {
	m, c := p.m, &p.m.Config
	p.call(m.names.indexWrite, true, kernels.Dims{M: p.rows, K: int32(c.IndexHeadDim), Rope: int32(c.QKRope)},
		c.IndexEps,
		x, l.keyNorm, l.keyBias, m.w.rope, p.at.pos, p.at.slots, l.cache)
}

// absorb takes the queries into the latent space.
func (p *program) absorb(l *layer) {
	c, a := &p.m.Config, &p.m.buf
	d := kernels.Dims{M: p.rows, N: int32(c.KVLoRA), K: int32(c.QKNope), Heads: p.m.heads, Rope: int32(c.QKRope)}
	p.call(l.absorb.kernel, false, d, p.m.exact, l.absorb.buf, a.q, p.m.w.rope, p.at.pos, a.qa)
}

// choose selects the positions that a block of long rows attends to.
func (p *program) choose(l *indexer, headWeights kernels.Buffer, k block) {
	m, c, a := p.m, &p.m.Config, &p.m.buf
	dim, heads := int32(c.IndexHeadDim), int32(c.IndexHeads)
	pos, seq := from(p.at.pos, k, 1), from(p.at.seq, k, 1)
	p.gemm(&l.queryUp, k.rows, from(a.qr, k, c.QLoRA), a.iq)
	d := kernels.Dims{M: k.rows, N: k.width, K: dim, Heads: heads, Rope: int32(c.QKRope), Slots: k.slots, Ctx: k.ctx}
	p.callWith(m.names.indexLogits, true, d, m.index,
		a.iq, from(headWeights, k, 0), m.w.rope, l.cache, a.pages, seq, pos, a.scores)
	p.call("index_topk", true, kernels.Dims{M: k.rows, N: k.width, TopK: int32(c.IndexTopK), Ctx: k.ctx}, 0,
		a.scores, pos, from(a.sel, k, c.IndexTopK))
}

// attend is the attention of a block of rows: over all positions, or over the
// topK selected.
func (p *program) attend(l *layer, k block, topK int32) {
	if k.rows == 0 {
		return
	}
	m, c, a := p.m, &p.m.Config, &p.m.buf
	d := kernels.Dims{M: k.rows, K: int32(c.KVLoRA), Rope: int32(c.QKRope), Heads: m.heads, TopK: topK,
		Slots: k.slots, Ctx: k.ctx}
	var sel kernels.Buffer
	if topK == 0 {
		d.N = int32(c.IndexTopK)
	} else {
		d.Slots, d.Ctx = k.selected, int64(k.rows)*int64(topK)
		sel = from(a.sel, k, c.IndexTopK)
	}
	heads := int(m.heads)
	p.call(m.names.attend, false, d, m.softmaxScale,
		from(a.qa, k, heads*(c.KVLoRA+c.QKRope)), l.latentCache, a.pages, from(p.at.seq, k, 1), from(p.at.pos, k, 1),
		sel, from(a.latent, k, heads*c.KVLoRA))
}

// valuesUp takes the attention's output from the latent space to the heads' values.
func (p *program) valuesUp(l *layer) {
	c, a := &p.m.Config, &p.m.buf
	d := kernels.Dims{M: p.rows, N: int32(c.VHead), K: int32(c.KVLoRA), Heads: p.m.heads}
	p.call(l.valuesUp.kernel, false, d, p.m.exact, l.valuesUp.buf, a.latent, a.values)
}

// meet adds attention's output to x, and leaves x, normed, where MLPs find it: of the rows of
// all ranks.
func (p *program) meet(w kernels.Buffer) {
	m, a := p.m, &p.m.buf
	if !p.own {
		p.reduce(w)
		return
	}
	hidden := int32(m.Config.Hidden)
	p.addNorm(w)
	d := kernels.Dims{M: p.rows, N: hidden, K: int32(p.cut.all), Ranks: m.ranks}
	p.call("all_gather_rows", false, d, 0, a.h, a.to, a.met)
	p.own = false
	if n := p.met.rows - d.K; n > 0 { // the rows of ranks that are not here
		at := int64(d.K) * int64(hidden) * 4
		p.call("gather_rows", true, kernels.Dims{M: n, N: hidden}, 0, a.met, a.again, a.met.Slice(at, a.met.Len-at))
	}
}

// part adds what the ranks have in part to x, of each rank's own rows, and leaves x, normed,
// in h.
func (p *program) part(w kernels.Buffer) {
	m, a := p.m, &p.m.buf
	if !m.apart {
		p.reduce(w)
		return
	}
	d := kernels.Dims{M: p.rows, N: int32(m.Config.Hidden), K: int32(p.cut.all), Ranks: m.ranks}
	p.call("reduce_scatter_norm", false, d, m.Config.NormEps, a.part, a.to, p.at.x, w, a.h)
	p.own = true
}

func (p *program) addNorm(w kernels.Buffer) {
	c, a := &p.m.Config, &p.m.buf
	p.call("add_norm", false, kernels.Dims{M: p.rows, N: int32(c.Hidden)}, c.NormEps, a.part, p.at.x, w, a.h)
}

// reduce adds what the ranks have in part to x and leaves x, normed, in h.
func (p *program) reduce(w kernels.Buffer) {
	c, a := &p.m.Config, &p.m.buf
	if p.m.ranks == 1 {
		p.addNorm(w)
		return
	}
	d := kernels.Dims{M: p.rows, N: int32(c.Hidden), Ranks: p.m.ranks}
	p.call("all_reduce_norm", false, d, c.NormEps, a.part, p.at.x, w, a.h)
}

// mlp is part = down(silu(gate h) · up h).
func (p *program) mlp(w *mlp) {
	a, x := &p.m.buf, &p.met
	p.gemm(&w.gateUp, x.rows, x.h, a.gateUp)
	p.call("silu_mul", false, kernels.Dims{M: x.rows, N: int32(w.down.cols)}, 0, a.gateUp, a.act)
	p.gemm(&w.down, x.rows, a.act, a.part)
}

// mixture is the shared expert, and the routed experts added to it.
func (p *program) mixture(w *mixture) {
	m, c, a, x := p.m, &p.m.Config, &p.m.buf, &p.met
	n, k := int32(c.Experts), int32(c.ExpertsPerToken)
	hidden, inner := int32(c.Hidden), int32(c.MoEIntermediate)/m.shards
	p.gemm(&w.router, x.rows, x.h, a.router)
	p.callWith("moe_route", true, kernels.Dims{M: x.rows, Groups: n, TopK: k}, m.routing, a.router, w.bias, a.experts,
		a.weights)
	p.mlp(&w.shared)
	p.call(w.up.kernel, false, kernels.Dims{M: x.rows, N: inner, K: hidden, Groups: n, TopK: k}, m.exact, w.up.buf, x.h,
		a.experts, a.chosen)
	p.call(w.down.kernel, false, kernels.Dims{M: x.rows, N: hidden, K: inner, Groups: n, TopK: k}, m.exact, w.down.buf,
		a.chosen, a.experts, a.weights, a.part)
}

// head turns the wanted rows of h into logits and tokens.
func (p *program) head() {
	if p.logits == 0 {
		return
	}
	a := &p.m.buf
	p.call("gather_rows", true, kernels.Dims{M: p.logits, N: int32(p.m.Config.Hidden)}, 0, a.h, a.logitRows, a.last)
	p.sample(p.logits, p.steering, a.last, a.logits, a.params, a.sampled)
}

// sample turns rows of normed hidden states into logits and tokens, which are steered by so
// many bits a token.
func (p *program) sample(rows int32, steering int64, x, logits, params, y kernels.Buffer) {
	m, c, a := p.m, &p.m.Config, &p.m.buf
	vocab := int32(c.Vocab)
	switch {
	case m.shards == 1, m.apart:
		p.gemm(&m.w.head, rows, x, logits)
	case m.ranks == 1: // the other shards' columns stay 0
		p.gemm(&m.w.head, rows, x, logits.Columns(0, m.w.head.rows, c.Vocab))
	default:
		vocab = vocab / m.shards * m.ranks // those that are here
		p.gemm(&m.w.head, rows, x, a.columns)
		p.call("all_gather", false, kernels.Dims{M: rows, N: vocab, Ranks: m.ranks}, 0, a.columns, logits)
	}
	p.call("sample", true, kernels.Dims{M: rows, N: vocab, TopK: min(int32(m.o.Tokens), vocab), Slots: steering}, 0,
		logits, params, a.seen, y, a.counts, a.masks, a.entries)
}

// from returns b from the first row of block k on. width is its values a row;
// a pitched buffer knows its own.
func from(b kernels.Buffer, k block, width int) kernels.Buffer {
	pitch := int64(width) * 4
	if b.Pitch != 0 {
		pitch = int64(b.Pitch)
	}
	b.Offset += int64(k.from) * pitch
	b.Len -= int64(k.from) * pitch
	return b
}

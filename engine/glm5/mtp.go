package glm5

import "glmbatch/kernels"

// Tip is the end of a sequence, whose tokens a step samples and the prediction layer goes on
// from.
// Its rows of logits are those of its last token and of the drafts behind it.
type Tip struct{ First, Rows int32 }

// MTPProgram returns the calls of the prediction layer. It runs after a program
// whose rows it continues: h still has their final hidden states. The batch's
// tokens are those that follow the rows' own, its positions the rows' own, and
// its logits are those of the tokens after those that follow. The layer has its
// own cache entries, in the same slots.
func (m *Model) MTPProgram(b *Batch) []kernels.Call {
	p := m.begin(b)
	p.joined()
	p.decoder(m.Config.Layers, m.w.mtp.norm)
	p.head()
	return p.calls
}

// joined makes the prediction layer's input of the tokens and of the hidden states in h of
// the positions before them.
func (p *program) joined() {
	m, w := p.m, p.m.w.mtp
	hidden := m.Config.Hidden
	d := kernels.Dims{M: p.rows, K: int32(hidden)}
	pair := m.buf.pair
	p.layer = int16(m.Config.Layers)
	p.embed()
	p.call("rms_norm", true, d, m.Config.NormEps, p.at.x, w.embedNorm, pair.Columns(0, hidden, 2*hidden))
	p.call("rms_norm", true, d, m.Config.NormEps, m.buf.h, w.hiddenNorm, pair.Columns(hidden, hidden, 2*hidden))
	p.gemm(&w.join, p.rows, pair, p.at.x)
	p.norm(p.at.x, m.w.layers[m.Config.Layers].attnNorm, m.buf.h)
}

// predict goes on from a step's samples with the prediction layer, as deep as the batch
// asks for. All rows get the layer's cache entries, which follow from its input alone. What
// else the layer computes is asked for where each tip goes on: behind the last of its
// tokens that its samples confirm. The first draft is of the model's hidden state there,
// those behind it of the layer's own output, with its norm, for which the layer has not
// been trained in all models. A draft is drawn as its token will be, with the same random
// number: where the two distributions are alike, so are the two tokens. Penalties are those
// of the row that it goes on from, as far as tokens in front of that are known, and there is
// no mask: which one it would be hangs on the token.
//
// The samples of draft i are in sampled behind those of the step, a tip each, and then
// those of draft i+1.
func (p *program) predict(b *Batch) {
	if len(b.Next) == 0 {
		return
	}
	m, c, a, g := p.m, &p.m.Config, &p.m.buf, &p.m.buf.ahead
	l, norm := &m.w.layers[c.Layers], m.w.mtp.norm
	tips, steered := int32(len(b.Tips)), int64(0)
	for _, t := range b.Tips {
		own := b.Params[t.First]
		own.Mask = -1
		steered += steering([]kernels.SampleParams{own})
	}
	p.layer = int16(c.Layers)
	if tips > 0 {
		p.call("accept", true, kernels.Dims{M: tips, N: p.logits}, 0,
			a.sampled, a.tips, a.logitRows, a.tokens, a.pos, a.seq, a.slots, a.params, a.next, g.from, g.rows.pos,
			g.rows.seq, g.rows.slots, g.params)
	}
	p.at.tokens = a.next
	p.joined()
	p.gemm(&l.front, p.rows, a.h, p.at.front)
	f := p.front(l)
	p.writeLatent(l, f.latent)
	p.writeIndex(l.index, f.key)
	if tips > 0 {
		p.call("gather_rows", true, kernels.Dims{M: tips, N: int32(c.Hidden)}, 0, p.at.x, g.from, g.rows.x)
		p.call("gather_rows", true, kernels.Dims{M: tips, N: int32(l.front.rows)}, 0, p.at.front, g.from, g.rows.front)
	}
	p.at = g.rows
	p.blocks(p.ahead(b))
	for i := 0; tips > 0 && i < b.Drafts; i++ {
		at := int64(p.logits+int32(i)*tips) * sampledBytes
		y := a.sampled.Slice(at, a.sampled.Len-at)
		if i > 0 {
			last := a.sampled.Slice(at-int64(tips)*sampledBytes, int64(tips)*sampledBytes)
			p.call("feed", true, kernels.Dims{M: tips, N: int32(c.Vocab)}, 0,
				last, g.order, g.order, g.rows.tokens, g.rows.pos, g.rows.seq, g.rows.slots, a.pages, g.params,
				kernels.Buffer{}, kernels.Buffer{}) // drafts are not what bitmaps and counts know
			p.joined()
			p.gemm(&l.front, p.rows, a.h, p.at.front)
			if c.ShareMTPIndex { // the selection of the first draft holds
				p.scored = p.scored[:0]
			}
		}
		p.attention(l, i > 0)
		p.mixed(l, norm)
		p.sample(tips, steered, a.h, g.logits, g.params, y)
	}
	p.layer = -1
}

// ahead is the tips as rows, each at the furthest position that it can come to.
func (p *program) ahead(b *Batch) *Batch {
	h := &p.tips
	h.Common = nil // a batch's, whose map is the next one's too
	h.Reset()
	h.Common = b.Common
	for _, k := range b.Tips {
		last := b.Logits[k.First+k.Rows-1]
		h.Add(0, b.Pos[last]+int32(b.Drafts)-1, b.Seq[last], 0)
	}
	return h
}

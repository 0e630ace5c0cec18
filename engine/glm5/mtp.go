package glm5

import "glmbatch/kernels"

// MTPProgram returns the calls of the prediction layer. It runs after a program
// whose rows it continues: h still has their final hidden states. The batch's
// tokens are those that follow the rows' own, its positions the rows' own, and
// its logits are those of the tokens after those that follow. The layer has its
// own cache entries, in the same slots.
func (m *Model) MTPProgram(b *Batch) []kernels.Call {
	p, c, a, w := m.begin(b), &m.Config, &m.buf, m.w.mtp
	p.layer = int16(c.Layers)
	hidden := c.Hidden
	d := kernels.Dims{M: p.rows, K: int32(hidden)}
	p.embed(a.x)
	p.call("rms_norm", true, d, c.NormEps, a.x, w.embedNorm, a.pair.Columns(0, hidden, 2*hidden))
	p.call("rms_norm", true, d, c.NormEps, a.h, w.hiddenNorm, a.pair.Columns(hidden, hidden, 2*hidden))
	p.gemm(&w.join, p.rows, a.pair, a.x)
	p.norm(a.x, m.w.layers[c.Layers].attnNorm, a.h)
	p.decoder(c.Layers, w.norm)
	p.head()
	return p.calls
}

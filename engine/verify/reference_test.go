package verify

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"

	"glmbatch/engine/checkpoint"
	"glmbatch/engine/glm5"
)

// reference is the model as its papers write it, slowly: float64, one token
// after the other, keys and values made for every head, nothing absorbed.
type reference struct {
	t  testing.TB
	c  glm5.Config
	ck *checkpoint.Checkpoint
	w  map[string][]float64
	// closest is the smallest gap between what was chosen and what was not.
	closest float64
	sel     [][]int32 // of the last indexer, a row a token
	later   bool      // of equal scores the later position is chosen
	worst   bool      // of the indexer's scores the lowest are chosen: a fault
	out     *recording
}

// recording is what a reference file has of one prompt.
type recording struct {
	hidden         []float32
	routes, chosen [][]int32 // a MoE layer, an indexer each
	weights        [][]float32
}

func newReference(t testing.TB, ck *checkpoint.Checkpoint) *reference {
	c, err := glm5.ParseConfig(ck.Config())
	if err != nil {
		t.Fatal(err)
	}
	return &reference{t: t, c: c, ck: ck, w: map[string][]float64{}, closest: math.Inf(1)}
}

// matrix returns a Linear's values, row after row.
func (m *reference) matrix(module string) []float64 {
	if v := m.w[module]; v != nil {
		return v
	}
	l, err := m.ck.Linear(module)
	if err != nil {
		m.t.Fatal(err)
	}
	l = l.Wide()
	v, err := l.Float32(0, l.Rows)
	if err != nil {
		m.t.Fatal(err)
	}
	m.w[module] = wide(v)
	return m.w[module]
}

func (m *reference) vector(name string) []float64 {
	if v := m.w[name]; v != nil {
		return v
	}
	v, err := m.ck.Vector(name)
	if err != nil {
		m.t.Fatal(err)
	}
	m.w[name] = wide(v)
	return m.w[name]
}

func wide(v []float32) []float64 {
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = float64(x)
	}
	return out
}

func (m *reference) times(module string, x []float64) []float64 { return product(m.matrix(module), x) }

// product is W x.
func product(w, x []float64) []float64 {
	y := make([]float64, len(w)/len(x))
	for i := range y {
		for j, v := range x {
			y[i] += w[i*len(x)+j] * v
		}
	}
	return y
}

func rms(x, w []float64, eps float32) []float64 {
	sum := 0.0
	for _, v := range x {
		sum += v * v
	}
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = v / math.Sqrt(sum/float64(len(x))+float64(eps)) * w[i]
	}
	return y
}

func layerNorm(x, w, b []float64, eps float32) []float64 {
	mean, dev := 0.0, 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		dev += (v - mean) * (v - mean) / float64(len(x))
	}
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = (v-mean)/math.Sqrt(dev+float64(eps))*w[i] + b[i]
	}
	return y
}

// rotate rotates pairs of x by the position's angles.
func (m *reference) rotate(x []float64, pos int) []float64 {
	y := slices.Clone(x)
	for i := 0; i < m.c.QKRope; i += 2 {
		sin, cos := math.Sincos(float64(pos) * math.Pow(m.c.RopeTheta, -float64(i)/float64(m.c.QKRope)))
		y[i], y[i+1] = x[i]*cos-x[i+1]*sin, x[i+1]*cos+x[i]*sin
	}
	return y
}

func dot(a, b []float64) float64 {
	s := 0.0
	for i := range a {
		s += a[i] * b[i]
	}
	return s
}

func silu(x float64) float64 { return x / (1 + math.Exp(-x)) }

func addTo(x, y []float64) {
	for i := range x {
		x[i] += y[i]
	}
}

// best returns the indices of the n largest scores, ascending.
func (m *reference) best(scores []float64, n int) []int32 {
	order := make([]int32, len(scores))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int {
		if m.later {
			return cmp.Or(cmp.Compare(scores[b], scores[a]), cmp.Compare(b, a))
		}
		return cmp.Compare(scores[b], scores[a])
	})
	if n < len(order) {
		if gap := scores[order[n-1]] - scores[order[n]]; gap > 0 { // equals go by index everywhere
			m.closest = min(m.closest, gap)
		}
		order = order[:n]
	}
	slices.Sort(order)
	return order
}

// forward returns each token's logits and final hidden state.
func (m *reference) forward(ids []int32) (logits, final [][]float64) {
	x := make([][]float64, len(ids))
	for t, id := range ids {
		x[t] = slices.Clone(m.matrix("model.embed_tokens")[int(id)*m.c.Hidden:][:m.c.Hidden])
	}
	m.keep(x)
	for i := range m.c.Layers {
		m.layer(i, x)
		if i+1 < m.c.Layers {
			m.keep(x)
		}
	}
	logits, final = m.head(x, "model.norm.weight")
	m.keep(final)
	return logits, final
}

func (m *reference) head(x [][]float64, norm string) (logits, final [][]float64) {
	for t := range x {
		final = append(final, rms(x[t], m.vector(norm), m.c.NormEps))
		logits = append(logits, m.times(m.c.HeadModule(), final[t]))
	}
	return logits, final
}

// predict returns the prediction layer's logits: row r from the hidden state of
// position r and the token after it.
func (m *reference) predict(ids []int32, final [][]float64) [][]float64 {
	at := glm5.LayerPrefix(m.c.Layers)
	x := make([][]float64, len(ids)-1)
	for r := range x {
		e := m.matrix("model.embed_tokens")[int(ids[r+1])*m.c.Hidden:][:m.c.Hidden]
		x[r] = m.times(at+"eh_proj", slices.Concat(rms(e, m.vector(at+"enorm.weight"), m.c.NormEps),
			rms(final[r], m.vector(at+"hnorm.weight"), m.c.NormEps)))
	}
	m.layer(m.c.Layers, x)
	logits, _ := m.head(x, at+"shared_head.norm.weight")
	return logits
}

func (m *reference) layer(i int, x [][]float64) {
	at := glm5.LayerPrefix(i)
	h := make([][]float64, len(x))
	for t := range x {
		h[t] = rms(x[t], m.vector(at+"input_layernorm.weight"), m.c.NormEps)
	}
	for t, y := range m.attention(i, h) {
		addTo(x[t], y)
	}
	var routes []int32
	var weights []float32
	for t := range x {
		g := rms(x[t], m.vector(at+"post_attention_layernorm.weight"), m.c.NormEps)
		if m.c.Dense(i) {
			addTo(x[t], m.mlp(at+"mlp.", g))
			continue
		}
		y, e, w := m.mixture(i, g)
		addTo(x[t], y)
		routes, weights = append(routes, e...), append(weights, w...)
	}
	if m.out != nil && !m.c.Dense(i) {
		m.out.routes, m.out.weights = append(m.out.routes, routes), append(m.out.weights, weights)
	}
}

func (m *reference) mlp(prefix string, x []float64) []float64 {
	gate, up := m.times(prefix+"gate_proj", x), m.times(prefix+"up_proj", x)
	for i := range gate {
		gate[i] = silu(gate[i]) * up[i]
	}
	return m.times(prefix+"down_proj", gate)
}

func (m *reference) mixture(i int, x []float64) (y []float64, chosen []int32, weights []float32) {
	at, c := glm5.LayerPrefix(i), &m.c
	s := m.times(at+"mlp.gate", x)
	bias := m.vector(at + "mlp.gate.e_score_correction_bias")
	biased := make([]float64, len(s))
	for e := range s {
		s[e] = 1 / (1 + math.Exp(-s[e]))
		biased[e] = s[e] + bias[e]
	}
	if each := c.Experts / c.Groups; c.Groups > 1 {
		group := make([]float64, c.Groups)
		for g := range group {
			top := slices.Sorted(slices.Values(biased[g*each : (g+1)*each]))
			group[g] = top[each-1] + top[each-2]
		}
		keep := m.best(group, c.TopKGroups)
		for e := range biased {
			if !slices.Contains(keep, int32(e/each)) {
				biased[e] = math.Inf(-1)
			}
		}
	}
	chosen = m.best(biased, c.ExpertsPerToken)
	sum := 1e-20
	for _, e := range chosen {
		sum += s[e]
	}
	if !c.NormTopK {
		sum = 1
	}
	y = m.mlp(at+"mlp.shared_experts.", x)
	for _, e := range chosen {
		w := s[e] / sum * float64(c.RoutedScale)
		weights = append(weights, float32(w))
		for k, v := range m.mlp(glm5.ExpertPrefix(i, int(e)), x) {
			y[k] += w * v
		}
	}
	return y, chosen, weights
}

func (m *reference) attention(i int, h [][]float64) [][]float64 {
	c, at := &m.c, glm5.LayerPrefix(i)+"self_attn."
	n := len(h)
	q, qr, kv, rotary := make([][]float64, n), make([][]float64, n), make([][]float64, n), make([][]float64, n)
	for t := range h {
		qr[t] = rms(m.times(at+"q_a_proj", h[t]), m.vector(at+"q_a_layernorm.weight"), c.LatentEps)
		q[t] = m.times(at+"q_b_proj", qr[t])
		a := m.times(at+"kv_a_proj_with_mqa", h[t])
		kv[t] = m.times(at+"kv_b_proj", rms(a[:c.KVLoRA], m.vector(at+"kv_a_layernorm.weight"), c.LatentEps))
		rotary[t] = m.rotate(a[c.KVLoRA:], t)
	}
	if c.IndexerFull(i) {
		m.index(at+"indexer.", h, qr)
	}
	each, dim := c.QKNope+c.VHead, c.QKHeadDim()
	out := make([][]float64, n)
	for t := range h {
		values := make([]float64, c.Heads*c.VHead)
		for head := range c.Heads {
			qh := q[t][head*dim : (head+1)*dim]
			qpe := m.rotate(qh[c.QKNope:], t)
			p, sum := make([]float64, len(m.sel[t])), 0.0
			for k, s := range m.sel[t] {
				score := dot(qh[:c.QKNope], kv[s][head*each:][:c.QKNope]) + dot(qpe, rotary[s])
				p[k] = math.Exp(score / math.Sqrt(float64(dim)))
				sum += p[k]
			}
			for k, s := range m.sel[t] {
				for d, v := range kv[s][head*each+c.QKNope : (head+1)*each] {
					values[head*c.VHead+d] += p[k] / sum * v
				}
			}
		}
		out[t] = m.times(at+"o_proj", values)
	}
	return out
}

// index chooses the positions that each token attends to.
func (m *reference) index(at string, h, qr [][]float64) {
	c := &m.c
	keys := make([][]float64, len(h))
	m.sel = make([][]int32, len(h))
	var chosen []int32
	for t := range h {
		keys[t] = m.rotate(layerNorm(m.times(at+"wk", h[t]), m.vector(at+"k_norm.weight"), m.vector(at+"k_norm.bias"),
			c.IndexEps), t)
		q, w := m.times(at+"wq_b", qr[t]), m.times(at+"weights_proj", h[t])
		scores := make([]float64, t+1)
		for head := range c.IndexHeads {
			qh := m.rotate(q[head*c.IndexHeadDim:(head+1)*c.IndexHeadDim], t)
			for s := range scores {
				scores[s] += w[head] / math.Sqrt(float64(c.IndexHeads)) * max(0,
					dot(qh, keys[s])/math.Sqrt(float64(c.IndexHeadDim)))
			}
		}
		if m.worst {
			for s := range scores {
				scores[s] = -scores[s]
			}
		}
		m.sel[t] = m.best(scores, c.IndexTopK)
		chosen = append(chosen, m.sel[t]...)
		for k := len(m.sel[t]); k < min(c.IndexTopK, len(h)); k++ { // as the reference files: masked ones fill up
			chosen = append(chosen, int32(t+1+k-len(m.sel[t])))
		}
	}
	if m.out != nil {
		m.out.chosen = append(m.out.chosen, chosen)
	}
}

func (m *reference) keep(x [][]float64) {
	if m.out == nil {
		return
	}
	for _, row := range x {
		for _, v := range row {
			m.out.hidden = append(m.out.hidden, float32(v))
		}
	}
}

// expected writes a reference file for some prompts.
func (m *reference) expected(prompts [][]int32, greedy int) []byte {
	c := &m.c
	out := map[string]entry{}
	for i, ids := range prompts {
		put := func(name string, e entry) { out[key(i, name)] = e }
		m.out = &recording{}
		logits, _ := m.forward(ids)
		rec := m.out
		m.out = nil
		put("input_ids", i32Entry(ids, len(ids)))
		put("logits", f32Entry(narrow(logits), len(ids), c.Vocab))
		put("hidden", f32Entry(rec.hidden, c.Layers+1, len(ids), c.Hidden))
		for j := range rec.routes {
			put(fmt.Sprintf("expert_index.%d", j), i32Entry(rec.routes[j], len(ids), c.ExpertsPerToken))
			put(fmt.Sprintf("expert_weight.%d", j), f32Entry(rec.weights[j], len(ids), c.ExpertsPerToken))
		}
		for j := range rec.chosen {
			put(fmt.Sprintf("index_topk.%d", j), i32Entry(rec.chosen[j], len(ids), min(c.IndexTopK, len(ids))))
		}
		text := slices.Clone(ids)
		var margins []float32
		for range greedy {
			logits, _ = m.forward(text)
			last := logits[len(logits)-1]
			top := m.best(last, 2)
			if last[top[1]] > last[top[0]] {
				top[0], top[1] = top[1], top[0]
			}
			margins = append(margins, float32(last[top[0]]-last[top[1]]))
			text = append(text, top[0])
		}
		put("greedy", i32Entry(text[len(ids):], greedy))
		put("greedy_margin", f32Entry(margins, greedy))
		if c.MTPLayers > 0 {
			_, final := m.forward(text)
			put("mtp_input_ids", i32Entry(text, len(text)))
			put("mtp_logits", f32Entry(narrow(m.predict(text, final)), len(text)-1, c.Vocab))
		}
	}
	return pack(out)
}

func narrow(rows [][]float64) []float32 {
	var v []float32
	for _, r := range rows {
		for _, x := range r {
			v = append(v, float32(x))
		}
	}
	return v
}

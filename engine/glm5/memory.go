package glm5

import "glmbatch/kernels"

// Region is a buffer that steps work in, with what it holds.
type Region struct {
	Name   string
	Layer  int // of a cache; -1: all layers use it in turn
	Buffer kernels.Buffer
	Whole  bool // the same on every rank
}

// The regions that hold a step's outcome. They are overwritten by the next.
const (
	RegionPages   = "pages"   // [MaxSeqs, pages of a context] int32
	RegionSeen    = "seen"    // [MaxSeqs, SeenWords] of 64 bits
	RegionCounts  = "counts"  // [MaxSeqs, vocab] uint16, a pitch apart
	RegionMasks   = "masks"   // [MaxLogits + MaxSeqs, SeenWords] of 64 bits
	RegionSel     = "sel"     // [rows, top-k] int32, of the layer that ran last
	RegionExperts = "experts" // [rows, experts a token] int32, likewise
	RegionWeights = "weights" // [rows, experts a token], likewise
	RegionLogits  = "logits"  // [logit rows, vocab]
	RegionSampled = "sampled" // kernels.Sampled, one a logit row
	RegionLatent  = "latent_cache"
	RegionIndex   = "index_cache"
)

// Memory lists what steps work in beside weights: what is uploaded, what calls
// hand to each other, and the caches. Buffers that this model lacks are left out.
func (m *Model) Memory() []Region {
	a := &m.buf
	g := &a.ahead
	var all []Region
	add := func(name string, layer int, whole bool, b kernels.Buffer) {
		if b.Index != 0 {
			all = append(all, Region{name, layer, b, whole})
		}
	}
	for _, r := range []struct {
		name  string
		whole bool
		b     kernels.Buffer
	}{
		{"tokens", true, a.tokens}, {"pos", true, a.pos}, {"seq", true, a.seq}, {"slots", true, a.slots},
		{"logit_rows", true, a.logitRows}, {"params", true, a.params}, {RegionPages, true, a.pages},
		{RegionSeen, true, a.seen},
		{RegionCounts, true, a.counts}, {RegionMasks, true, a.masks}, {"entries", true, a.entries},
		{"x", true, a.x}, {"h", true, a.h}, {"front", true, a.front}, {"qr", true, a.qr}, {"iq", true, a.iq},
		{"scores", true, a.scores}, {RegionSel, true, a.sel}, {"router", true, a.router},
		{RegionExperts, true, a.experts},
		{RegionWeights, true, a.weights}, {"last", true, a.last}, {RegionLogits, true, a.logits},
		{RegionSampled, true, a.sampled},
		{"pair", true, a.pair}, {"next", true, a.next}, {"tips", true, a.tips}, {"ahead.tokens", true, g.rows.tokens},
		{"ahead.pos", true, g.rows.pos},
		{"ahead.seq", true, g.rows.seq}, {"ahead.slots", true, g.rows.slots}, {"ahead.from", true, g.from},
		{"ahead.params", true, g.params},
		{"ahead.order", true, g.order}, {"ahead.x", true, g.rows.x}, {"ahead.front", true, g.rows.front},
		{"ahead.logits", true, g.logits},
		{"q", false, a.q}, {"qa", false, a.qa}, {"latent", false, a.latent}, {"values", false, a.values},
		{"gate_up", false, a.gateUp}, {"act", false, a.act}, {"chosen", false, a.chosen}, {"part", false, a.part},
		{"columns", false, a.columns},
	} {
		add(r.name, -1, r.whole, r.b)
	}
	for i, b := range m.cache.latent {
		add(RegionLatent, i, true, b)
		add(RegionIndex, i, true, m.cache.index[i])
	}
	return all
}

// Region returns a buffer by its name; none where the model lacks it.
func (m *Model) Region(name string, layer int) kernels.Buffer {
	for _, r := range m.Memory() {
		if r.Name == name && r.Layer == layer {
			return r.Buffer
		}
	}
	return kernels.Buffer{}
}

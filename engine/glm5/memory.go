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
	g, alike := &a.ahead, !m.apart // what rows have is the same on every rank
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
		{"tokens", alike, a.tokens}, {"pos", alike, a.pos}, {"seq", alike, a.seq}, {"slots", alike, a.slots},
		{"logit_rows", alike, a.logitRows}, {"params", alike, a.params}, {RegionPages, alike, a.pages},
		{RegionSeen, alike, a.seen}, {RegionCounts, alike, a.counts}, {RegionMasks, alike, a.masks},
		{"entries", true, a.entries}, {"x", alike, a.x}, {"h", alike, a.h}, {"front", alike, a.front},
		{"qr", alike, a.qr}, {"iq", alike, a.iq}, {"scores", alike, a.scores}, {RegionSel, alike, a.sel},
		{"router", true, a.router}, {RegionExperts, true, a.experts}, {RegionWeights, true, a.weights},
		{"last", alike, a.last}, {RegionLogits, alike, a.logits}, {RegionSampled, alike, a.sampled},
		{"pair", alike, a.pair}, {"next", alike, a.next}, {"tips", alike, a.tips},
		{"ahead.tokens", alike, g.rows.tokens}, {"ahead.pos", alike, g.rows.pos}, {"ahead.seq", alike, g.rows.seq},
		{"ahead.slots", alike, g.rows.slots}, {"ahead.from", alike, g.from}, {"ahead.params", alike, g.params},
		{"ahead.order", alike, g.order}, {"ahead.x", alike, g.rows.x}, {"ahead.front", alike, g.rows.front},
		{"ahead.logits", alike, g.logits}, {"to", true, a.to}, {"again", true, a.again}, {"met", true, a.met},
		{"q", false, a.q}, {"qa", false, a.qa}, {"latent", false, a.latent}, {"values", false, a.values},
		{"gate_up", false, a.gateUp}, {"act", false, a.act}, {"chosen", false, a.chosen}, {"part", false, a.part},
		{"columns", false, a.columns},
	} {
		add(r.name, -1, r.whole, r.b)
	}
	for i, b := range m.cache.latent {
		add(RegionLatent, i, alike, b)
		add(RegionIndex, i, alike, m.cache.index[i])
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

package fit

import (
	"slices"
	"strings"
	"testing"

	"glmbatch/datasets/demo"
	"glmbatch/engine/glm5"
	"glmbatch/engine/synth"
	"glmbatch/kernels"
)

// With default flags a model starts where its weights leave room, whatever context it
// announces; what does not fit is refused with the figures and a way out.
func TestFitsItself(t *testing.T) {
	h200 := func(n int) Room {
		at := Room{Device: "cuda"}
		for range n {
			at.GPUs = append(at.GPUs, 149e9)
		}
		return at
	}
	for _, c := range []struct {
		config      string
		at          Room
		cache       kernels.Format
		tp          int
		low, high   int64 // cache tokens
		least, most int   // positions of a sequence
		fault       string
	}{
		{"glm-5", h200(8), kernels.BF16, 8, 700_000, 760_000, 202_752, 202_752, ""},
		{"glm-5.2", h200(8), kernels.BF16, 8, 700_000, 1 << 20, 655_360, 1 << 20, ""},
		{"glm-5.2", h200(8), kernels.FP8, 8, 1 << 20, 2 << 20, 1 << 20, 1 << 20, ""},
		{"glm-5", h200(2), kernels.BF16, 8, 0, 0, 0, 0, "try --kv-cache fp8, more memory"},
		{"tiny", Room{Device: "cpu", Memory: 8e9}, kernels.BF16, 8, 64 * 2048, 64 * 2048, 2048, 2048, ""},
		{"tiny", Room{Device: "cpu", Memory: 300e6}, kernels.BF16, 1, 64, 64 * 2048, 64, 2048, ""},
		{"tiny", Room{Device: "cpu", Memory: 30e6}, kernels.BF16, 1, 0, 0, 0, 0, "this machine has 30.0 MB free"},
		{"tiny", Room{Device: "cpu"}, kernels.BF16, 1, 0, 0, 0, 0, "its memory is not known"},
	} {
		_, config, err := (&synth.Options{Config: c.config, MTP: true}).Resolve()
		if err != nil {
			t.Fatal(err)
		}
		o := glm5.Options{KVCache: c.cache, MaxRows: Rows(c.at.Device, glm5.Options{}), MaxSeqs: 64, Shards: c.tp}
		m := New(c.config, &config, Planned(&config, c.tp, o), nil, o, c.at)
		if !m.Fits {
			if text := m.Fault + ": " + m.Remedy(); c.fault == "" || !strings.Contains(text, c.fault) {
				t.Errorf("%s on %+v: %s", c.config, c.at, text)
			}
			continue
		}
		tokens := m.Usual(64)
		context := m.Positions(tokens)
		if c.fault != "" || tokens < c.low || tokens > c.high || context < c.least || context > c.most ||
			int64(context) > tokens {
			t.Errorf("%s on %+v: %d tokens, a context of %d: %+v", c.config, c.at, tokens, context, m)
		}
	}
}

// A context that caches limit is a round number: a little more or less memory is the
// same job.
func TestContextIsRound(t *testing.T) {
	m := &Fit{Context: 1 << 20}
	last := 0
	for tokens := int64(64); tokens < 1<<20; tokens += 64 {
		c := m.Positions(tokens)
		if c < last || int64(c) > tokens || int64(c)*8 < tokens*7-8*64 || c%kernels.PageTokens != 0 {
			t.Fatalf("caches of %d tokens are for a context of %d, those before for %d", tokens, c, last)
		}
		last = c
	}
	if m.Positions(600_000) != m.Positions(640_000) {
		t.Errorf("%d and %d", m.Positions(600_000), m.Positions(640_000))
	}
}

// One rank of eight needs the room of one, on a GPU of its own or beside others.
func TestFitOfSomeRanks(t *testing.T) {
	_, c, err := (&synth.Options{Config: "glm-5", MTP: true}).Resolve()
	if err != nil {
		t.Fatal(err)
	}
	need := Rank{Weights: 61e9}
	for _, at := range []Room{
		{Device: "cuda", GPUs: []int64{149e9}, Ranks: 1},
		{Device: "cuda", GPUs: []int64{149e9, 149e9}, Ranks: 2},
		{Device: "cpu", Memory: 149e9, Ranks: 1},
	} {
		o := glm5.Options{KVCache: kernels.FP8, Shards: 8, MaxRows: 2048, MaxSeqs: 64, Context: 4096}
		if m := New("glm-5", &c, need, nil, o, at); !m.Fits || m.Memory != 149e9 || m.Ranks != 1 {
			t.Errorf("%+v: %+v", at, m)
		}
		at.Ranks = 0
		if m := New("glm-5", &c, need, nil, o, at); m.Fits && at.Device == "cuda" && len(at.GPUs) == 1 {
			t.Errorf("eight ranks on one GPU: %+v", m)
		}
	}
}

// TestUnknown: memory that is not known is one fault, and no other counts as it.
func TestUnknown(t *testing.T) {
	c, err := glm5.ParseConfig(demo.Files()["config.json"])
	if err != nil {
		t.Fatal(err)
	}
	o := glm5.Options{KVCache: kernels.FP8, MaxRows: 64, MaxSeqs: 4, Shards: 4, Pages: 4}
	for name, at := range map[string]Room{"no place": {Device: "cuda", GPUs: []int64{0}, PerGPU: 1},
		"known": {Device: "cuda", GPUs: []int64{1 << 40}}, "unknown": {Device: "cuda", GPUs: []int64{0}}} {
		if m := New("x", &c, Rank{}, nil, o, at); m.Unknown != (name == "unknown") || m.Fits != (name == "known") {
			t.Errorf("%s: %+v", name, m)
		}
	}
}

// In the throughput layout the caches of eight H200s hold more than five times the sequences: each
// rank has its own, beside attention's weights whole.
func TestSequencesOfRanks(t *testing.T) {
	_, config, err := (&synth.Options{Config: "glm-5"}).Resolve()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		layout    glm5.Layout
		dense     kernels.Format
		low, high int64 // sequences of 8,192 tokens on all ranks
	}{
		{glm5.Latency, kernels.BF16, 150, 170},
		{glm5.Throughput, kernels.BF16, 850, 950},
		{glm5.Throughput, kernels.FP8, 1050, 1200},
	} {
		o := glm5.Options{Layout: c.layout, KVCache: kernels.FP8, Dense: c.dense, MaxSeqs: 64, Shards: 8}
		o.MaxRows = Rows("cuda", o)
		at := Room{Device: "cuda", GPUs: slices.Repeat([]int64{149e9}, 8)}
		m := New("glm-5", &config, Planned(&config, 8, o), nil, o, at)
		n := int64(m.Caches) * m.Sequences(8192)
		t.Logf("%s, dense weights %s: %d sequences", c.layout, c.dense, n)
		if n < c.low || n > c.high {
			t.Errorf("%+v: %d sequences: %+v", c, n, m)
		}
	}
}

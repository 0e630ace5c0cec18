package main

import (
	"strings"
	"testing"

	"glmbatch/engine/glm5"
	"glmbatch/kernels"
)

// With default flags a model starts where its weights leave room, whatever context it
// announces; what does not fit is refused with the figures and a way out.
func TestFitsItself(t *testing.T) {
	h200 := func(n int) machineRoom {
		at := machineRoom{device: "cuda"}
		for range n {
			at.gpus = append(at.gpus, 149e9)
		}
		return at
	}
	for _, c := range []struct {
		config      string
		at          machineRoom
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
		{"tiny", machineRoom{device: "cpu", memory: 8e9}, kernels.BF16, 8, 64 * 2048, 64 * 2048, 2048, 2048, ""},
		{"tiny", machineRoom{device: "cpu", memory: 300e6}, kernels.BF16, 1, 64, 64 * 2048, 64, 2048, ""},
		{"tiny", machineRoom{device: "cpu", memory: 30e6}, kernels.BF16, 1, 0, 0, 0, 0, "this machine has 30.0 MB free"},
		{"tiny", machineRoom{device: "cpu"}, kernels.BF16, 1, 0, 0, 0, 0, "its memory is not known"},
	} {
		_, config, err := synthConfig(&synthOptions{Config: c.config, Scale: 1, MTP: true})
		if err != nil {
			t.Fatal(err)
		}
		o := glm5.Options{KVCache: c.cache, MaxRows: usualRows(c.at.device), MaxSeqs: defaultSeqs, Shards: c.tp}
		m := fitOf(c.config, &config, memoryPlanned(&config, c.tp), nil, o, c.at)
		if !m.Fits {
			if text := m.Fault + ": " + m.remedy(); c.fault == "" || !strings.Contains(text, c.fault) {
				t.Errorf("%s on %+v: %s", c.config, c.at, text)
			}
			continue
		}
		tokens := m.usual(defaultSeqs)
		context := m.context(tokens)
		if c.fault != "" || tokens < c.low || tokens > c.high || context < c.least || context > c.most || int64(context) > tokens {
			t.Errorf("%s on %+v: %d tokens, a context of %d: %+v", c.config, c.at, tokens, context, m)
		}
	}
}

// A context that caches limit is a round number: a little more or less memory is the
// same job.
func TestContextIsRound(t *testing.T) {
	m := &modelFit{Context: 1 << 20}
	last := 0
	for tokens := int64(64); tokens < 1<<20; tokens += 64 {
		c := m.context(tokens)
		if c < last || int64(c) > tokens || int64(c)*8 < tokens*7-8*64 || c%kernels.PageTokens != 0 {
			t.Fatalf("caches of %d tokens are for a context of %d, those before for %d", tokens, c, last)
		}
		last = c
	}
	if m.context(600_000) != m.context(640_000) {
		t.Errorf("%d and %d", m.context(600_000), m.context(640_000))
	}
}

package bench

import (
	"encoding/json"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"glmbatch/engine/fit"
	"glmbatch/engine/glm5"
	"glmbatch/engine/synth"
	"glmbatch/kernels"
	"glmbatch/kernels/cpu"
	"glmbatch/kernels/nvfp4"
	"glmbatch/kernels/ranks"
	"glmbatch/kernels/roofline"
)

// opened is a model of random weights on the CPU.
func opened(t testing.TB, with synth.Options, o Options) (Model, *Bench) {
	t.Helper()
	members, c, err := with.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	m := Model{Name: with.Config, Config: c}
	if m.Weights, err = synth.Checkpoint(m.Name, text, &m.Config, o.Seed); err != nil {
		t.Fatal(err)
	}
	if m.Recipe, err = synth.Recipe(text, o.Seed); err != nil {
		t.Fatal(err)
	}
	cover := m.Config.Cover(m.Weights)
	m.Rank = fit.Of(&cover, o.TP, glm5.Options{KVCache: o.KVCache})
	devices, err := cpu.Open(o.Ranks, cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	g, err := ranks.New(devices, ranks.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o.Log = io.Discard
	b, err := Open(t.Context(), m, g, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return m, b
}

// What does not fit is left out and said.
func TestPool(t *testing.T) {
	var p pool
	p.perToken = 1000
	rs := []Result{{of: Case{batch: 2, context: 100}}, {of: Case{batch: 1000, context: 100}}}
	p.plan(rs, 0, 1e6)
	if p.pages != 4 || rs[0].Skipped != "" ||
		!strings.Contains(rs[1].Skipped, "needs 128 MB of caches, there is room for 1.00 MB") {
		t.Errorf("%d pages, %+v", p.pages, rs)
	}
}

// Activations stay in range through a model of random blocks, and no two experts
// are the same.
func TestRandomBlocks(t *testing.T) {
	g, b := opened(t, synth.Options{Config: "tiny", Layers: 40, MTP: true},
		Options{TP: 1, Ranks: 1, Batches: []int{4}, Contexts: []int{200}, Chunk: 1,
			KVCache: kernels.BF16, Act: "w4a16", Steps: 1, Seed: 3, Machine: &roofline.Machine{Read: 1e9}})
	if err := b.Measure(t.Context()); err != nil {
		t.Fatal(err)
	}
	logits := make([]float32, 4*b.model.Config.Vocab)
	if err := b.model.Logits(logits); err != nil {
		t.Fatal(err)
	}
	var sq float64
	for _, v := range logits {
		sq += float64(v) * float64(v)
	}
	if rms := math.Sqrt(sq / float64(len(logits))); !(rms > .1 && rms < 100) { // not a NaN either
		t.Errorf("the logits are of size %g", rms)
	}
	ck, c := g.Weights, &g.Config
	seen := map[string]bool{}
	for i := c.Layers - 2; i < c.Layers; i++ {
		for e := range c.Experts {
			l, err := ck.Linear(glm5.ExpertPrefix(i, e) + "gate_proj")
			if err != nil {
				t.Fatal(err)
			}
			m, err := l.Slice(0, l.Rows, 0, l.Cols)
			if err != nil {
				t.Fatal(err)
			}
			seen[string(m.Data)] = true
		}
	}
	if len(seen) < 2*c.Experts-1 { // two may begin at one place
		t.Errorf("%d experts have %d different weights", 2*c.Experts, len(seen))
	}
}

func TestRandomEntries(t *testing.T) {
	rng := rand.NewPCG(1, 2)
	for _, f := range []kernels.Format{kernels.F32, kernels.BF16, kernels.FP8} {
		const tokens = 2 * kernels.PageTokens
		latent := randomEntries(rng, f, tokens, 1, 512, 64)
		index := randomEntries(rng, f, tokens, kernels.PageTokens, 128, 0)
		if len(latent) != tokens*kernels.LatentEntry(f, 512, 64) || len(index) != tokens*kernels.IndexEntry(f, 128) {
			t.Errorf("%s: %d bytes of latents, %d of keys", f, len(latent), len(index))
		}
		if f == kernels.FP8 {
			for i, b := range index[:kernels.PageTokens*128] {
				if v := nvfp4.E4M3[b]; !(v*v <= 240*240) {
					t.Fatalf("code %d of the keys is %g", i, v)
				}
			}
		}
	}
}

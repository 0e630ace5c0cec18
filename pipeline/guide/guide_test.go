package guide

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"glmbatch/datasets/demo"
	"glmbatch/pipeline/tokenizer"
)

// The demo's end tokens.
var demoEnds = []int32{2027, 2034, 2036}

func newGuides(t testing.TB, o Options) (*Guides, *tokenizer.Tokenizer) {
	t.Helper()
	tok, err := tokenizer.Load(demo.Files()["tokenizer.json"])
	if err != nil {
		t.Fatal(err)
	}
	o.Ends, o.Cache = demoEnds, t.TempDir()
	if dir, err := os.UserCacheDir(); err == nil { // where the program keeps it too
		o.Cache = filepath.Join(dir, "glmbatch", "guide")
	}
	g, err := New(context.Background(), tok, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g, tok
}

// sampleText draws a text by a spec, each token that may come next being as likely.
func sampleText(t testing.TB, g *Guides, tok *tokenizer.Tokenizer, s Spec, rng *rand.Rand,
	most int) (text string, ended bool) {
	t.Helper()
	ids := sampleTokens(t, g, s, false, rng, most)
	if n := len(ids); n > 0 && slices.Contains(demoEnds, ids[n-1]) {
		return tok.Decode(ids[:n-1], false), true
	}
	return tok.Decode(ids, false), false
}

func sampleTokens(t testing.TB, g *Guides, s Spec, thinking bool, rng *rand.Rand, most int) (ids []int32) {
	t.Helper()
	m := g.Start(s, thinking)
	defer m.Close()
	set := make([]uint64, (g.vocab.tokens+63)/64)
	for len(ids) < most {
		clear(set)
		if _, err := m.Mask(0, set); err != nil {
			t.Fatalf("after %d tokens: %v", len(ids), err)
		}
		if count(set) == 0 {
			t.Fatalf("after %d tokens none may come next", len(ids))
		}
		id := drawFrom(set, rng)
		ids = append(ids, id)
		if slices.Contains(demoEnds, id) {
			break
		}
		m.Add(id)
	}
	return ids
}

func drawFrom(set []uint64, rng *rand.Rand) int32 {
	k := rng.IntN(count(set))
	for id := range int32(len(set) * 64) {
		if set[id/64]>>(id%64)&1 == 0 {
			continue
		}
		if k == 0 {
			return id
		}
		k--
	}
	return -1
}

func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

package glm5

import (
	"strings"
	"testing"
)

func TestTensors(t *testing.T) {
	c := mustParse(t, "glm-5", nil)
	seen := map[string]bool{}
	counts := map[int]int{}
	for w := range c.Tensors(true) {
		if seen[w.Name] {
			t.Fatalf("%s comes twice", w.Name)
		}
		seen[w.Name] = true
		counts[w.Layer]++
		if w.Split != Whole && w.Cols == 0 || w.MayQuantize && w.Cols%16 != 0 {
			t.Errorf("%s [%d, %d]: a vector is not split, a Linear has whole blocks", w.Name, w.Rows, w.Cols)
		}
		if w.MTP != (w.Layer == 78) || (w.Expert >= 0) != strings.Contains(w.Name, "mlp.experts.") {
			t.Errorf("%s: MTP %v, expert %d", w.Name, w.MTP, w.Expert)
		}
	}
	// As the released checkpoint has them.
	for layer, want := range map[int]int{-1: 3, 0: 17, 2: 17, 3: 787, 77: 787, 78: 791} {
		if counts[layer] != want {
			t.Errorf("layer %d has %d tensors, want %d", layer, counts[layer], want)
		}
	}
	for name, want := range map[string][2]int{
		"model.embed_tokens.weight":                          {154880, 6144},
		"model.layers.0.self_attn.q_b_proj.weight":           {16384, 2048},
		"model.layers.5.self_attn.kv_a_proj_with_mqa.weight": {576, 6144},
		"model.layers.5.self_attn.kv_b_proj.weight":          {28672, 512},
		"model.layers.5.self_attn.o_proj.weight":             {6144, 16384},
		"model.layers.5.self_attn.indexer.wq_b.weight":       {4096, 2048},
		"model.layers.5.self_attn.indexer.k_norm.bias":       {128, 0},
		"model.layers.2.mlp.down_proj.weight":                {6144, 12288},
		"model.layers.3.mlp.experts.255.down_proj.weight":    {6144, 2048},
		"model.layers.3.mlp.gate.e_score_correction_bias":    {256, 0},
		"model.layers.78.eh_proj.weight":                     {6144, 12288},
		"model.layers.78.shared_head.norm.weight":            {6144, 0},
	} {
		found := false
		for w := range c.Tensors(true) {
			if w.Name == name {
				found = true
				if w.Rows != want[0] || w.Cols != want[1] {
					t.Errorf("%s is [%d, %d], want %v", name, w.Rows, w.Cols, want)
				}
			}
		}
		if !found {
			t.Errorf("%s is not listed", name)
		}
	}
	tied := mustParse(t, "tiny", map[string]any{"tie_word_embeddings": true})
	for w := range tied.Tensors(true) {
		if w.Name == "lm_head.weight" {
			t.Error("a tied head has a weight")
		}
	}
	n := 0
	for range c.Tensors(false) { // a reader may stop at any time
		if n++; n == 40 {
			break
		}
	}
}

// TestShare: the parts of all ranks make the whole.
func TestShare(t *testing.T) {
	c := mustParse(t, "tiny", nil)
	for w := range c.Tensors(true) {
		for _, n := range []int{1, 2, 4, 8} {
			rows, cols := w.Share(n)
			part := int64(rows) * int64(max(cols, 1))
			if w.Split != Whole {
				part *= int64(n)
			}
			if part != w.Params() {
				t.Errorf("%s: %d parts of [%d, %d] of [%d, %d]", w.Name, n, rows, cols, w.Rows, w.Cols)
			}
		}
	}
}

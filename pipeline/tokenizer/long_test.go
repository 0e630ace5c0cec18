package tokenizer

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

// doubling is the demo's tokenizer with tokens of b, each twice as long as the one before,
// up to some bytes.
func doubling(t testing.TB, most int) []byte {
	t.Helper()
	data, err := os.ReadFile("../../datasets/demo/model/tokenizer.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	model := doc["model"].(map[string]any)
	vocab, merges := model["vocab"].(map[string]any), model["merges"].([]any)
	next := len(vocab) + len(doc["added_tokens"].([]any))
	for w := "b"; len(w) < most; w += w {
		vocab[w+w], next = next, next+1
		merges = append(merges, []any{w, w})
	}
	model["merges"] = merges
	if data, err = json.Marshal(doc); err != nil {
		t.Fatal(err)
	}
	return data
}

// TestLongWords: a word of many MB is as many merges, done in their order; a tokenizer
// whose own words are so long is refused.
func TestLongWords(t *testing.T) {
	if testing.Short() {
		t.Skip("megabytes of text")
	}
	const token, word = 32 << 10, 4 << 20
	tok, err := Load(doubling(t, token))
	if err != nil {
		t.Fatal(err)
	}
	ids, err := tok.TryEncode(nil, strings.Repeat("b", word+3))
	if err != nil || len(ids) != word/token+2 || ids[0] != ids[word/token-1] || ids[word/token] == ids[word/token+1] {
		t.Errorf("%d tokens, %v", len(ids), err)
	}
	if _, err := Load(doubling(t, 128<<10)); err == nil || !strings.Contains(err.Error(), "bytes, more than 65536") {
		t.Errorf("a token of 128 KiB: %v", err)
	}
}

// BenchmarkLongWord shows that time grows with the word, and not with its square.
func BenchmarkLongWord(b *testing.B) {
	tok, err := Load(doubling(b, 32<<10))
	if err != nil {
		b.Fatal(err)
	}
	for _, mib := range []int{1, 4} {
		text := strings.Repeat("b", mib<<20)
		b.Run(fmt.Sprintf("%dMiB", mib), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, err := tok.TryEncode(nil, text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

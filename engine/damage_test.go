package engine_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"slices"
	"testing"

	"glmbatch/datasets/demo"
	"glmbatch/engine"
	"glmbatch/engine/checkpoint"
	"glmbatch/engine/glm5"
)

// Weights that are no numbers give no tokens: the request fails, and the others too.
func TestNaNWeightsFail(t *testing.T) {
	files := demo.Files()
	files["model.safetensors"] = withNaN(t, files["model.safetensors"], "model.norm.weight")
	ck, err := checkpoint.FromFiles(files)
	if err != nil {
		t.Fatal(err)
	}
	m := loadFrom(t, ck, 2, 1, glm5.Options{})
	for i, s := range []engine.Sampling{{MaxTokens: 4}, {MaxTokens: 4, Temperature: 1, Logprobs: 3},
		{MaxTokens: 4, Repetition: 1.2}} {
		got, _ := answers(t, m, engine.Options{Ahead: 1 + i%2},
			[]engine.Request{{ID: 7, Prompt: []int32{5, 6, 7}, Sampling: s}, {ID: 8, Prompt: []int32{9}, Sampling: s}})
		for _, id := range []int64{7, 8} {
			if a := got[id]; a.reason != engine.Failed || !slices.Equal(a.tokens, []int32{-1}) {
				t.Errorf("request %d with temperature %v: %v, want a failure and no token", id, s.Temperature, a)
			}
		}
	}
}

// withNaN returns a safetensors file whose BF16 tensor name is all NaN.
func withNaN(t *testing.T, file []byte, name string) []byte {
	t.Helper()
	file = bytes.Clone(file)
	n := binary.LittleEndian.Uint64(file)
	var header map[string]struct {
		Offsets [2]int `json:"data_offsets"`
	}
	if err := json.Unmarshal(file[8:8+n], &header); err != nil {
		t.Fatal(err)
	}
	at, ok := header[name]
	if !ok {
		t.Fatalf("no tensor %s", name)
	}
	data := file[8+n:][at.Offsets[0]:at.Offsets[1]]
	for i := 0; i < len(data); i += 2 {
		binary.LittleEndian.PutUint16(data[i:], 0x7fc0)
	}
	return file
}

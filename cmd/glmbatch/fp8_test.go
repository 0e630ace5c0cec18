package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"glmbatch/datasets/demo"
	"glmbatch/engine/checkpoint"
	"glmbatch/engine/modelopt"
	"glmbatch/kernels/cuda"
)

// fp8Args make the checkpoint of the tests below: of the demo's size or, with
// GLMBATCH_TEST_FULL, of GLM-5's own, but for layers and experts.
func fp8Args() []string {
	if os.Getenv("GLMBATCH_TEST_FULL") == "" {
		return []string{"--config", "tiny", "--layers", "3"}
	}
	return []string{"--config", "glm-5", "--layers", "3", "--set", "first_k_dense_replace=1", "--experts", "16",
		"--vocab", "2048"}
}

// An FP8 checkpoint gives a job's rows the bits that the same values give as BF16, on
// every device that is here.
func TestFP8Checkpoint(t *testing.T) {
	tokenizer := t.TempDir()
	for name, b := range demo.Files() {
		if strings.HasSuffix(name, ".json") || strings.HasSuffix(name, ".jinja") {
			if err := os.WriteFile(filepath.Join(tokenizer, name), b, 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	fp8, plain := filepath.Join(t.TempDir(), "fp8"), filepath.Join(t.TempDir(), "bf16")
	command(t, exitOK, append([]string{"model", "synth", "--weights", "fp8", "--mtp=false", "--tokenizer", tokenizer,
		"--out", fp8}, fp8Args()...)...)
	widen(t, fp8, plain)
	prompts, tokens, devices := filepath.Join(t.TempDir(), "prompts.jsonl"), "6", []string{"cpu"}
	lines := "{\"prompt\": \"7 + 8 =\"}\n{\"prompt\": \"sort: " + strings.Repeat("9 4 1 ", 30) +
		"\"}\n{\"prompt\": \"reverse: stone\"}\n"
	if cuda.Available() == nil {
		devices = append(devices, "cuda")
		if os.Getenv("GLMBATCH_TEST_FULL") != "" { // beyond the indexer's top-k
			tokens, devices = "12", devices[1:]
			lines += "{\"prompt\": \"sort: " + strings.Repeat("9 4 1 ", 500) + "\"}\n"
			for range 20 {
				lines += "{\"prompt\": \"count to 12\"}\n"
			}
		}
	}
	if err := os.WriteFile(prompts, []byte(lines), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, device := range devices {
		out := t.TempDir()
		for _, dir := range []string{fp8, plain} {
			for _, tp := range []string{"1", "8"} {
				command(t, exitOK, "run", prompts, "--model", dir, "--raw", "--tp", tp, "--device", device,
					"--max-tokens", tokens, "--ignore-eos", "--logprobs", "3",
					"--out", filepath.Join(out, filepath.Base(dir)+tp))
			}
		}
		for _, tp := range []string{"1", "8"} {
			text, _ := command(t, exitOK, "compare", filepath.Join(out, "fp8"+tp), filepath.Join(out, "bf16"+tp))
			t.Logf("%s, %s ranks: %s", device, tp, text)
		}
	}
}

// widen writes the BF16 form of an FP8 checkpoint.
func widen(t *testing.T, from, to string) {
	t.Helper()
	ck, err := checkpoint.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer ck.Close()
	var entries []checkpoint.Entry
	linears := map[string]checkpoint.Linear{}
	for _, name := range ck.Names() {
		x, err := ck.Tensor(name)
		if err != nil {
			t.Fatal(err)
		}
		e := checkpoint.Entry{Name: name, DType: x.DType, Shape: x.Shape}
		if x.DType == checkpoint.F8 {
			if linears[name], err = ck.Linear(strings.TrimSuffix(name, ".weight")); err != nil {
				t.Fatal(err)
			}
			e.DType = checkpoint.BF16
		}
		if !strings.HasSuffix(name, "_scale_inv") {
			entries = append(entries, e)
		}
	}
	w, err := checkpoint.NewWriter(to, entries, 5e9)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	for _, e := range entries {
		var b []byte
		if l, ok := linears[e.Name]; ok {
			m, err := l.Slice(0, l.Rows, 0, l.Cols)
			if err != nil {
				t.Fatal(err)
			}
			b = m.Data
		} else {
			x, err := ck.Tensor(e.Name)
			if err != nil {
				t.Fatal(err)
			}
			if b, err = x.Bytes(); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Write(e.Name, 0, b); err != nil {
			t.Fatal(err)
		}
	}
	var config map[string]any
	if err := json.Unmarshal(ck.Config(), &config); err != nil {
		t.Fatal(err)
	}
	delete(config, "quantization_config")
	if err := modelopt.WriteJSON(w, checkpoint.ConfigFile, config); err != nil {
		t.Fatal(err)
	}
	if _, err := checkpoint.CopySide(w, from, tokenizerFiles); err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
}

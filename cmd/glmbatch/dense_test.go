package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"glmbatch/engine/verify"
	"glmbatch/pipeline"
)

// --dense-weights fp8 says what it costs, to who runs it and in the manifest, and
// makes another job; without it nothing is different.
func TestDenseWeights(t *testing.T) {
	ids := map[string]bool{}
	for _, dense := range []string{"bf16", "fp8"} {
		m, stderr := shortJob(t, "--dense-weights", dense)
		ids[m.RunID] = true
		said := strings.Contains(stderr, "shared experts 2.")
		if rounded := dense == "fp8"; said != rounded || (len(m.Rounding) == 4) != rounded ||
			(m.Settings["--dense-weights"] == "fp8") != rounded {
			t.Errorf("%s: said %v, manifest %v, settings %v", dense, said, m.Rounding, m.Settings)
		}
	}
	if len(ids) != 2 {
		t.Errorf("run IDs %v", ids)
	}
	code, stdout, stderr := glmbatch("bench", "--config", "tiny", "--tp", "2", "--device", "cpu", "--machine", "h200",
		"--context", "100", "--steps", "1", "--warmup", "1", "--dense-weights", "fp8")
	if code != 0 || !strings.Contains(stdout, "rounded to FP8: relative errors attention 2.") {
		t.Errorf("bench: exit code %d: %s%s", code, stdout, stderr)
	}
}

// --activations bf16 is in the manifest and makes another job; model verify says what it costs.
func TestActivations(t *testing.T) {
	ids := map[string]bool{}
	for _, inputs := range []string{"f32", "bf16"} {
		m, _ := shortJob(t, "--activations", inputs)
		ids[m.RunID] = true
		if rounded := inputs == "bf16"; (m.Settings["--activations"] == "bf16") != rounded {
			t.Errorf("%s: settings %v", inputs, m.Settings)
		}
	}
	if len(ids) != 2 {
		t.Errorf("run IDs %v", ids)
	}
	expected := filepath.Join("..", "..", "engine", "verify", "testdata", "demo.safetensors")
	exact := verified(t, expected)
	rounded := verified(t, expected, "--activations", "bf16")
	if rounded.Activations != "bf16" || rounded.Exact || exact.Prompts[0].Hidden*10 > rounded.Prompts[0].Hidden {
		t.Errorf("hidden states differ by %g, with rounded inputs by %g: %+v", exact.Prompts[0].Hidden,
			rounded.Prompts[0].Hidden, rounded)
	}
}

func verified(t *testing.T, expected string, args ...string) verify.Report {
	t.Helper()
	args = append([]string{"model", "verify", "demo", expected, "--tp", "1", "--device", "cpu", "--json"}, args...)
	code, stdout, stderr := glmbatch(args...)
	var r []verify.Report
	if err := json.Unmarshal([]byte(stdout), &r); code != 0 || err != nil || len(r) != 1 || len(r[0].Prompts) == 0 {
		t.Fatalf("%v: exit code %d, %v: %s", args, code, err, stderr)
	}
	return r[0]
}

// shortJob runs three rows of the demo: its manifest, and what it said.
func shortJob(t *testing.T, args ...string) (m pipeline.Manifest, stderr string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "out")
	code, _, stderr := glmbatch(append([]string{"run", "--demo", "--limit", "3", "--tp", "2", "--max-tokens", "4",
		"--device", "cpu", "--out", dir}, args...)...)
	if code != 0 {
		t.Fatalf("%v: exit code %d: %s", args, code, stderr)
	}
	text, err := os.ReadFile(filepath.Join(dir, "_manifest.json"))
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m, stderr
}

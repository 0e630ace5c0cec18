package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"glmbatch/datasets/demo"
)

// TestHubCache: a model that Hugging Face's client has downloaded is found by its
// name and by its folder in the cache, with its text files.
func TestHubCache(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("HF_HUB_CACHE", cache)
	dir := filepath.Join(cache, "models--owner--Tiny-1.0")
	at := filepath.Join(dir, "snapshots", "abc")
	for _, d := range []string{at, filepath.Join(dir, "refs")} {
		if err := os.MkdirAll(d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for name, b := range demo.Files() {
		if err := os.WriteFile(filepath.Join(at, name), b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, ref := range []string{"", "abc\n"} {
		if ref != "" {
			if err := os.WriteFile(filepath.Join(dir, "refs", "main"), []byte(ref), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{"owner/Tiny-1.0", dir, at} {
			m, err := (&runFlags{tp: 1, model: name}).openModel()
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if m.text.Tokenizer == nil || m.config.Layers != 6 {
				t.Errorf("%s: %d layers", name, m.config.Layers)
			}
			if err := m.close(); err != nil {
				t.Error(err)
			}
			lines := filepath.Join(t.TempDir(), "lines")
			if err := os.WriteFile(lines, []byte(`{"text": "3 + 4"}`), 0o666); err != nil {
				t.Fatal(err)
			}
			if text, _ := command(t, exitOK, "model", "tokenize", name, lines); !strings.Contains(text,
				`"decoded":"3 + 4"`) {
				t.Errorf("%s: %s", name, text)
			}
		}
	}
	if err := os.RemoveAll(at); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"owner/other":    "hf download owner/other",
		"owner/Tiny-1.0": "no snapshot is there: download it first",
		"../owner/x":     "no such file",
	} {
		if name != "../owner/x" {
			if code, _, stderr := glmbatch("model", "tokenize", name); code != exitInput ||
				!strings.Contains(stderr, want) {
				t.Errorf("tokenize %s: %d, %s", name, code, stderr)
			}
		}
		if _, err := openCheckpoint(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

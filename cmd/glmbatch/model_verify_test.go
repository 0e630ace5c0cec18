package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"glmbatch/datasets/demo"
	"glmbatch/engine/verify"
)

func TestModelVerify(t *testing.T) {
	dir := t.TempDir()
	for name, b := range demo.Files() {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden := filepath.Join("..", "..", "engine", "verify", "testdata", "demo.safetensors")
	none := filepath.Join(dir, "model.safetensors")
	for _, c := range []struct {
		args []string
		code int
		want string // in what is printed
	}{
		{[]string{dir, golden}, exitOK, "tp 8, cache f32"},
		{[]string{dir, golden, "--tp", "2", "--json"}, exitOK, `"prompts"`},
		{[]string{dir, golden, "--tp", "1", "--act", "int8", "--threads", "1"}, exitOK, "activations int8"},
		{[]string{dir, golden, "--tp", "3"}, exitInput, "--tp 3: it must be"},
		{[]string{dir, golden, "--kv-cache", "int4"}, exitInput, "f32 or bf16 or fp8"},
		{[]string{dir, golden, "--act", "w8"}, exitInput, "w4a16"},
		{[]string{dir}, exitInput, "a folder and a file"},
		{[]string{dir, none}, exitInput, "p0.input_ids"},
		{[]string{dir, filepath.Join(dir, "missing")}, exitInput, "missing"},
		{[]string{filepath.Join(dir, "missing"), golden}, exitInput, "missing"},
	} {
		var out, errs bytes.Buffer
		code := run(context.Background(), append([]string{"model", "verify"}, c.args...), &out, &errs)
		if text := out.String() + errs.String(); code != c.code || !strings.Contains(text, c.want) {
			t.Errorf("%v: exit code %d, want %d with %q:\n%s", c.args[1:], code, c.code, c.want, text)
		}
		if c.code == exitOK && c.want == `"prompts"` {
			var r []verify.Report
			if err := json.Unmarshal(out.Bytes(), &r); err != nil || len(r) != 1 || r[0].Ranks != 2 ||
				len(r[0].Prompts) != 2 {
				t.Errorf("JSON: %v %+v", err, r)
			}
		}
	}
	// Another model under the same config is out of tolerance.
	weights := bytes.Clone(demo.Files()["model.safetensors"])
	for i := len(weights) - 2_000_000; i < len(weights); i += 1000 {
		weights[i] ^= 0x20
	}
	if err := os.WriteFile(none, weights, 0o644); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if code := run(context.Background(), []string{"model", "verify", dir, golden}, &out, &errs); code != exitCheck ||
		!strings.Contains(errs.String(), "out of tolerance") {
		t.Errorf("a damaged model: exit code %d:\n%s%s", code, out.String(), errs.String())
	}
}

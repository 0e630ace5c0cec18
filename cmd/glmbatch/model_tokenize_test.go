package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestModelTokenize(t *testing.T) {
	const demo = "../../datasets/demo/model"
	damaged := t.TempDir()
	if err := os.WriteFile(filepath.Join(damaged, "tokenizer.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, dir, in string
		flags         []string
		code          int
		stdout        string
		stderr        string
	}{
		{
			name: "text", dir: demo, in: `{"text": "Hello <|user|>wörld"}` + "\n\n" + `{"text": ""}`,
			stdout: `{"ids":[1862,586,220,2034,86,127,114,81,491],"decoded":"Hello <|user|>wörld"}` + "\n" +
				`{"ids":[],"decoded":""}` + "\n",
		},
		{
			name: "the demo checkpoint by its name", dir: "demo",
			in: `{"messages": [{"role": "user", "content": "hi"}], "enable_thinking": true}`, flags: []string{"--chat"},
			stdout: `{"text":"[gMASK]<sop><|user|>hi<|assistant|><think>","ids":[2029,2031,2034,653,2035,2037],"decoded":"[gMASK]<sop><|user|>hi<|assistant|><think>"}` + "\n",
		},
		{
			name: "skip special", dir: demo, in: `{"text": "<sop>x"}`, flags: []string{"--skip-special"},
			stdout: `{"ids":[2031,87],"decoded":"x"}` + "\n",
		},
		{
			name: "chat", dir: demo, in: `{"messages": [{"role": "user", "content": "hi"}], "enable_thinking": true}`,
			flags:  []string{"--chat"},
			stdout: `{"text":"[gMASK]<sop><|user|>hi<|assistant|><think>","ids":[2029,2031,2034,653,2035,2037],"decoded":"[gMASK]<sop><|user|>hi<|assistant|><think>"}` + "\n",
		},
		{
			name: "a line without text", dir: demo, in: `{"text": "x"}` + "\n" + `{"txt": "y"}`, code: exitInput,
			stdout: `{"ids":[87],"decoded":"x"}` + "\n", stderr: `line 2: "text" is missing`,
		},
		{name: "not JSON", dir: demo, in: "x", code: exitInput, stderr: "line 1: invalid character"},
		{name: "a number for text", dir: demo, in: `{"text": 5}`, code: exitInput,
			stderr: "line 1: a JSON number is not expected there"},
		{name: "a list for a line", dir: demo, in: `[1]`, code: exitInput,
			stderr: "line 1: a JSON array is not expected there"},
		{name: "a long line", dir: demo, in: strings.Repeat(" ", maxLineBytes+1), code: exitInput,
			stderr: "line 1: it is longer than 67.1 MB"},
		{name: "not UTF-8", dir: demo, in: "{\"text\": \"\xff\"}", code: exitInput, stderr: "line 1: not UTF-8"},
		{name: "a chat without messages", dir: demo, in: `{"text": "x"}`, flags: []string{"--chat"}, code: exitInput,
			stderr: `line 1: "messages" is missing`},
		{name: "a bad message", dir: demo, in: `{"messages": [3]}`, flags: []string{"--chat"}, code: exitInput,
			stderr: "line 1: message 0: not an object"},
		{name: "no folder", dir: "no/such/folder", in: "{}", code: exitInput, stderr: "no/such/folder"},
		{name: "a damaged tokenizer", dir: damaged, in: "{}", code: exitInput, stderr: "tokenizer.json: model"},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "lines.jsonl")
			if err := os.WriteFile(file, []byte(c.in), 0o600); err != nil {
				t.Fatal(err)
			}
			var stdout, stderr strings.Builder
			code := run(t.Context(), append([]string{"model", "tokenize", c.dir, file}, c.flags...), &stdout, &stderr)
			if code != c.code || stdout.String() != c.stdout || !strings.Contains(stderr.String(), c.stderr) ||
				strings.Count(stderr.String(), "\n") > 1 {
				t.Errorf("code %d, stdout %q, stderr %q; want %d, %q, %q", code, stdout.String(), stderr.String(),
					c.code, c.stdout, c.stderr)
			}
		})
	}
}

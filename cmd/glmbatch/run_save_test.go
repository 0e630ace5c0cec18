package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"glmbatch/datasets"
	"glmbatch/datasets/datasetstest"
)

// TestSave: rows in other formats, in and out: each prompt's answer is the same.
func TestSave(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a model")
	}
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	for name, text := range map[string]string{
		"p.csv":       "prompt,note\n\"Sort alphabetically: b, a\",\"x, \"\"y\"\"\"\nCount: 3,\n",
		"batch.jsonl": `{"custom_id":"one","method":"POST","url":"/v1/chat/completions","body":{"messages":[{"role":"user","content":"Sort alphabetically: b, a"}],"max_tokens":8}}` + "\n" + `{"custom_id":"two","method":"PUT","url":"/v1/chat/completions","body":{}}` + "\n",
		"twice.jsonl": strings.Repeat(`{"custom_id":"one","method":"POST","url":"/v1/chat/completions","body":{}}`+"\n",
			2),
	} {
		if err := os.WriteFile(in(name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	run := func(want int, args ...string) string {
		t.Helper()
		code, out, errs := glmbatch(append([]string{"run", "--tp", "1", "--max-tokens", "8"}, args...)...)
		if code != want {
			t.Fatalf("%v: exit code %d: %s%s", args, code, out, errs)
		}
		return out + errs
	}
	text := run(0, in("p.csv"), "--quiet", "--out", in("a"), "--save", in("a.csv.gz"), "--stdout", "csv")
	packed, err := os.ReadFile(in("a.csv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	saved, err := io.ReadAll(z)
	if err != nil || string(saved) != text {
		t.Errorf("%v: the file has\n%s, standard output\n%s", err, saved, text)
	}
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(rows) != 3 || rows[0][0] != "prompt" || rows[0][2] != "response" || rows[1][1] != `x, "y"` ||
		rows[2][1] != "" || rows[1][2] == "" {
		t.Fatalf("%v: %q", err, rows)
	}
	if run(0, in("p.csv"), "--quiet", "--out", in("a"), "--save", in("again.csv")); !same(t, in("again.csv"), text) {
		t.Error("a complete job saves other rows")
	}
	run(exitRowErrors, in("batch.jsonl"), "--quiet", "--out", in("b"), "--save", in("b.jsonl"))
	line, err := os.ReadFile(in("b.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var l struct {
		ID       string `json:"custom_id"`
		Response struct {
			Body struct {
				Choices []struct {
					Message struct {
						Content string `json:"content"`
					} `json:"message"`
				} `json:"choices"`
			} `json:"body"`
		} `json:"response"`
	}
	if err := json.Unmarshal(line, &l); err != nil || l.ID != "one" ||
		l.Response.Body.Choices[0].Message.Content != rows[1][2] {
		t.Errorf("%v: %s, want %q", err, line, rows[1][2])
	}
	if bad, err := os.ReadFile(in("b.errors.jsonl")); err != nil || strings.Count(string(bad), "\n") != 1 ||
		!strings.Contains(string(bad), `"custom_id":"two"`) ||
		!strings.Contains(string(bad), "line 2: invalid_method") {
		t.Errorf("%v: %s", err, bad)
	}
	if says := run(exitInput, in("twice.jsonl"), "--out", in("c")); !strings.Contains(says,
		"line 2: duplicate_custom_id") {
		t.Error(says)
	}
	if says := run(exitInput, in("p.csv"), "--out", in("c"), "--save", in("c.txt")); !strings.Contains(says, "--save") {
		t.Error(says)
	}
	left, err := filepath.Glob(in(".*"))
	if err != nil || len(left) > 0 {
		t.Error(left, err)
	}
	if _, err := os.Stat(in("c")); err == nil {
		t.Error("a folder was made")
	}
	if n, err := datasetstest.ReadAll[mergedRow](filepath.Join(in("b"), datasets.OutputsDir)); err != nil ||
		len(n) != 2 {
		t.Error(len(n), err)
	}
}

func same(t *testing.T, path, want string) bool {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data) == want
}

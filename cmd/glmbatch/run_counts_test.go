package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"glmbatch/datasets"
	"glmbatch/datasets/datasetstest"
	"glmbatch/units"
)

// countedRow is what outputs say of tokens.
type countedRow struct {
	Response   *string                   `parquet:"response"`
	Reason     string                    `parquet:"finish_reason"`
	Prompt     int32                     `parquet:"prompt_tokens"`
	Completion int32                     `parquet:"completion_tokens"`
	IDs        []int32                   `parquet:"token_ids,list"`
	Chosen     []datasets.TokenLogprob   `parquet:"logprobs,list"`
	Top        [][]datasets.TokenLogprob `parquet:"top_logprobs,list" parquet-element:",list"`
}

// TestCountsAgree: outputs, manifest, summary, dry run and steps count the same tokens.
func TestCountsAgree(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a model")
	}
	prompts := filepath.Join(t.TempDir(), "prompts.jsonl")
	if err := os.WriteFile(prompts, []byte(`{"prompt":"Add 1 and 2."}`+"\n"+`{"prompt":null}`+"\n"+
		`{"prompt":"Capital of Japan?"}`), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 8} {
		out := t.TempDir()
		args := []string{"run", "-", "--n", fmt.Sprint(n), "--max-tokens", "3", "--ignore-eos", "--temperature", "1",
			"--max-errors", "1"}
		call := func(more ...string) string {
			c := child(t, append(args, more...)...)
			in, err := os.Open(prompts)
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			c.Stdin = in
			text, err := c.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			return string(text)
		}
		dry, said := call("--dry-run"), call("--out", out)
		rows, err := datasetstest.ReadAll[countedRow](filepath.Join(out, "outputs"))
		if err != nil {
			t.Fatal(err)
		}
		var prompt, completion int64
		for _, r := range rows {
			prompt += int64(r.Prompt)
			completion += int64(r.Completion)
		}
		good := int64(len(rows) - 1) // but the null prompt
		var m struct {
			Counts struct {
				Prompt     int64 `json:"prompt_tokens"`
				Completion int64 `json:"completion_tokens"`
			} `json:"counts"`
			Engine struct {
				Shared int64 `json:"shared_prompt_tokens"`
			} `json:"engine"`
		}
		if b, err := os.ReadFile(filepath.Join(out, "_manifest.json")); err != nil || json.Unmarshal(b, &m) != nil {
			t.Fatal(err)
		}
		steps, err := datasetstest.ReadAll[datasets.Step](filepath.Join(out, "steps"))
		if err != nil {
			t.Fatal(err)
		}
		var computed, sampled int64
		for _, s := range steps {
			computed += int64(s.Tokens)
			sampled += int64(s.Sampled)
		}
		if good != int64(2*n) || completion != 3*good || prompt != m.Counts.Prompt ||
			completion != m.Counts.Completion || computed+m.Engine.Shared != prompt+completion-good ||
			sampled != completion {
			t.Errorf("n %d: outputs have %d + %d tokens in %d rows, the manifest %+v, steps %d and %d sampled", n,
				prompt, completion, good, m.Counts, computed, sampled)
		}
		if (m.Engine.Shared > 0) != (n > 1) ||
			strings.Contains(said, " prompt tokens that rows share were computed once") != (n > 1) {
			t.Errorf("n %d: %d prompt tokens were shared: %s", n, m.Engine.Shared, said)
		}
		if want := fmt.Sprintf("%s prompt tokens (", units.Digits(prompt)); !strings.Contains(said, want) {
			t.Errorf("n %d: no %q in %s", n, want, said)
		}
		if !strings.Contains(dry, "prompt tokens    "+units.Digits(prompt)+",") ||
			!strings.Contains(dry, "output tokens    at most "+units.Digits(completion)+"\n") {
			t.Errorf("n %d: %d and %d tokens are not in %s", n, prompt, completion, dry)
		}
	}
}

// TestTextLogprobs: each token has its text, id and rank, the end token too.
func TestTextLogprobs(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a model")
	}
	out := t.TempDir()
	if code, _, errs := glmbatch("run", "--demo", "--limit", "12", "--out", out, "--logprobs", "3", "--token-ids",
		"--max-tokens", "3", "--temperature", "0.5", "--quiet", "--timeline", "off"); code != 0 {
		t.Fatal(errs)
	}
	rows, err := datasetstest.ReadAll[countedRow](filepath.Join(out, "outputs"))
	if err != nil {
		t.Fatal(err)
	}
	ended := 0
	for i, r := range rows {
		want := len(r.IDs)
		if r.Reason == "stop" {
			want++
			ended++
		}
		if len(r.Chosen) != want || len(r.Top) != want {
			t.Fatalf("row %d (%s): %d and %d entries for %d tokens", i, r.Reason, len(r.Chosen), len(r.Top), len(r.IDs))
		}
		text := ""
		for k, c := range r.Chosen {
			if k < len(r.IDs) {
				text += c.Token
				if c.ID != r.IDs[k] {
					t.Errorf("row %d: token %d is %d in logprobs and %d in token_ids", i, k, c.ID, r.IDs[k])
				}
			} else if !strings.HasPrefix(c.Token, "<|") {
				t.Errorf("row %d: the end token is %q", i, c.Token)
			}
			if len(r.Top[k]) != 3 || c.Rank != nil &&
				(r.Top[k][*c.Rank-1].ID != c.ID || r.Top[k][*c.Rank-1].Token != c.Token) {
				t.Errorf("row %d: %+v of %+v", i, c, r.Top[k])
			}
		}
		if text != *r.Response {
			t.Errorf("row %d: the tokens' texts are %q, the response %q", i, text, *r.Response)
		}
	}
	if ended == 0 || ended == len(rows) {
		t.Errorf("%d of %d responses ended by themselves: the test tests nothing", ended, len(rows))
	}
}

// TestSharingChangesNoByte: outputs are the same files whether prefixes are shared or not.
func TestSharingChangesNoByte(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a model")
	}
	system := strings.Repeat("Answer in one word, as short as can be. ", 12)
	args := []string{"run", "--demo", "--limit", "12", "--n", "2", "--temperature", "0.7", "--max-tokens", "6",
		"--logprobs", "1", "--system", system, "--timeline", "off"}
	var files [][]byte
	for _, sharing := range []string{"on", "off"} {
		out := t.TempDir()
		code, _, errs := glmbatch(append(args, "--out", out, "--prefix-sharing", sharing)...)
		if code != 0 || strings.Contains(errs, "were computed once") != (sharing == "on") {
			t.Fatalf("--prefix-sharing %s: exit code %d, %s", sharing, code, errs)
		}
		files = append(files, outputs(t, out))
	}
	if !bytes.Equal(files[0], files[1]) {
		t.Error("outputs differ with --prefix-sharing off")
	}
}

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"glmbatch/datasets"
)

// TestChain: eight answers to each ticket, a judge of each, and a last job over the
// judged rows, with the flags that one would write first: each job's parameters are its
// own, every row of the job before comes once, and the columns of all stay.
func TestChain(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a model")
	}
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	lines := []string{`{"prompt":"Capital of Kenya?","ticket":"T-1"}`, `{"prompt":null,"ticket":"T-2"}`,
		`{"prompt":"Write in upper case: stone","ticket":"T-3"}`}
	if err := os.WriteFile(path("tickets.jsonl"), []byte(strings.Join(lines, "\n")), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"run", path("tickets.jsonl"), "--out", path("answers"), "--n", "8", "--temperature", "2", "--seed", "5",
			"--max-tokens", "6", "--max-errors", "1"},
		{"run", path("answers"), "--out", path("judged"), "--prompt-column", "response", "--system",
			"Is this answer right?", "--max-tokens", "3", "--max-errors", "1"},
		{"run", path("judged"), "--out", path("selected"), "--prompt-column", "glm_response", "--temperature", "0",
			"--max-tokens", "2", "--max-errors", "1"},
	} {
		if code, _, errs := glmbatch(append(args, "--tp", "1", "--timeline", "off")...); code != 0 {
			t.Fatalf("%v: exit code %d, %s", args, code, errs)
		}
	}
	var rows []chainRow
	if err := datasets.Read(filepath.Join(path("selected"), "outputs"), func(part []chainRow) error {
		rows = append(rows, part...)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(rows) != 17 { // eight, one that has no prompt, eight
		t.Fatalf("%d rows, want 17", len(rows))
	}
	answers := map[string]bool{}
	for i, r := range rows {
		ticket, sample := "T-1", int32(i)
		switch {
		case i == 8:
			ticket, sample = "T-2", 0
		case i > 8:
			ticket, sample = "T-3", int32(i-9)
		}
		if r.Ticket != ticket || r.Sample != sample || r.JudgeSample != 0 || r.LastSample != 0 ||
			r.JudgeRow != int64(i) || r.LastRow != int64(i) {
			t.Errorf("row %d is %+v", i, r)
		}
		if i == 8 {
			if r.Code != "null_prompt" || r.JudgeCode != "null_prompt" || r.LastCode != "null_prompt" {
				t.Errorf("the row without a prompt is %+v", r)
			}
			continue
		}
		if r.Code+r.JudgeCode+r.LastCode != "" || r.Tokens > 6 || r.JudgeTokens > 3 || r.LastTokens > 2 ||
			r.Seed == r.JudgeSeed {
			t.Errorf("row %d is %+v", i, r)
		}
		answers[fmt.Sprint(r.Ticket, r.Response)] = true
	}
	if len(answers) < 4 {
		t.Errorf("sixteen samples gave %d answers", len(answers))
	}
}

type chainRow struct {
	Ticket   string `parquet:"ticket"`
	Response string `parquet:"response"`
	Code     string `parquet:"error_code"`
	Tokens   int32  `parquet:"completion_tokens"`
	Sample   int32  `parquet:"sample_index"`
	Seed     int64  `parquet:"seed"`

	JudgeCode   string `parquet:"glm_error_code"`
	JudgeTokens int32  `parquet:"glm_completion_tokens"`
	JudgeRow    int64  `parquet:"glm_row_index"`
	JudgeSample int32  `parquet:"glm_sample_index"`
	JudgeSeed   int64  `parquet:"glm_seed"`

	LastCode   string `parquet:"glm2_error_code"`
	LastTokens int32  `parquet:"glm2_completion_tokens"`
	LastRow    int64  `parquet:"glm2_row_index"`
	LastSample int32  `parquet:"glm2_sample_index"`
	LastSeed   int64  `parquet:"glm2_seed"`
}

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"glmbatch/datasets"
	"glmbatch/datasets/demo"
	"glmbatch/pipeline"
)

// TestFlagValues: each is refused as usage, in one line that names the flag,
// before anything is read or written.
func TestFlagValues(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--tp 16", "--tp 16: it must be 1, 2, 4 or 8"},
		{"--kv-tokens -5", "--kv-tokens -5: it must be from 0"},
		{"--kv-tokens 1", "--kv-tokens 1 has no room for a prompt"},
		{"--max-seqs -1", "--max-seqs -1: it must be from 0"},
		{"--max-batch-tokens 100000000", "--max-batch-tokens 100000000: it must be from 0"},
		{"--threads -1", "--threads -1: it must be from 0"},
		{"--max-errors -1", "--max-errors -1: it must be from 0"},
		{"--ranks-per-gpu -1", "--ranks-per-gpu -1: it must be from 0"},
		{"--step-timeout -1s", "--step-timeout -1s: it must be from 0"},
		{"--temperature nan", "--temperature: NaN is not a number from 0 to 100"},
		{"--top-p 2", "--top-p: 2 is not a number from 0 to 1"},
		{"--layout throughput --kv-tokens 511", "--kv-tokens 511 has no room for a prompt: at least 512"},
		{"--layout throughput --tp 2 --kv-tokens 127", "--kv-tokens 127 has no room for a prompt: at least 128"},
		{"--layout throughput --speculate 3", "--speculate 3: the prediction layer makes no drafts in --layout " +
			"throughput: --speculate ngram:3 needs"},
		{"--layout throughput --speculate auto --dry-run", "--speculate auto: the prediction layer makes no drafts"},
		{"--layout throughput --capture first=1", "--capture is for --layout latency"},
		{"--stop-token-ids -1", "--stop-token-ids: [-1] has something that is not a token id"},
	} {
		out := filepath.Join(t.TempDir(), "out")
		code, _, errs := glmbatch(append([]string{"run", "--demo", "--out", out}, strings.Fields(c.args)...)...)
		if code != exitInput || !strings.Contains(errs, "glmbatch: "+c.want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: exit code %d, %q", c.args, code, errs)
		}
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%s: the folder was made", c.args)
		}
	}
}

// TestNumbers: so are those of other commands.
func TestNumbers(t *testing.T) {
	dir := t.TempDir()
	for name, data := range demo.Files() {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	type usage struct{ command, flag, value string }
	cases := []usage{{"report " + dir, "--step", "-5"}}
	for _, c := range []string{"run --demo --dry-run", "model inspect " + dir, "model verify " + dir + " x",
		"doctor --config tiny", "bench --config tiny"} {
		cases = append(cases, usage{c, "--tp", "-1"}, usage{c, "--tp", "0"}, usage{c, "--tp", "3"},
			usage{c, "--tp", "16"})
	}
	for _, c := range cases {
		code, out, errs := glmbatch(append(strings.Fields(c.command), c.flag, c.value)...)
		if want := "glmbatch: " + c.flag + " " + c.value + ": it must be "; code != exitInput || out != "" ||
			!strings.HasPrefix(errs, want) {
			t.Errorf("%v: exit code %d, %s%s", c, code, out, errs)
		}
	}
}

// TestFullDisk: the message says what to do.
func TestFullDisk(t *testing.T) {
	r := runFlags{out: "job"}
	err := r.outcome(&pipeline.Counts{}, fmt.Errorf("writing x: %w", syscall.ENOSPC))
	if codeOf(err) != exitOutput || !strings.HasPrefix(err.Error(),
		"job is on a full disk: make room and run the same command again") {
		t.Errorf("exit code %d, %q", codeOf(err), err)
	}
}

// TestForeignFolder: nothing is left in a folder that is not ours.
func TestForeignFolder(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, more := range [][]string{nil, {"--overwrite"}} {
		code, _, errs := glmbatch(append([]string{"run", "--demo", "--out", dir}, more...)...)
		if code != exitInput || !strings.Contains(errs, "it has notes.txt but no _manifest.json") {
			t.Errorf("%v: exit code %d, %q", more, code, errs)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("the folder has %v (%v)", entries, err)
	}
}

// TestNoCommand: a name that is no command is usage, at every level.
func TestNoCommand(t *testing.T) {
	for _, args := range [][]string{{"rum"}, {"model", "inspekt"}, {"import", "torhc", "x"}} {
		code, stdout, errs := glmbatch(args...)
		if code != exitInput || stdout != "" || !strings.Contains(errs, "has no command") ||
			strings.Count(errs, "\n") != 1 {
			t.Errorf("%v: exit code %d, %q, %q", args, code, stdout, errs)
		}
	}
	for _, args := range [][]string{{}, {"model"}, {"import"}} {
		if code, stdout, errs := glmbatch(args...); code != 0 || errs != "" || !strings.Contains(stdout, "Usage:") {
			t.Errorf("%v: exit code %d, %q", args, code, errs)
		}
	}
}

// TestOwnOutput: a job does not read what it writes, nor remove what it was to read.
func TestOwnOutput(t *testing.T) {
	data := t.TempDir()
	prompts := filepath.Join(data, "prompts.parquet")
	if err := os.WriteFile(prompts, demo.Prompts(), 0o666); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(data, link); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(data, "job")
	job := func(args ...string) (int, string) {
		code, _, errs := glmbatch(append([]string{"run", "--limit", "2", "--max-tokens", "2", "--quiet", "--timeline",
			"off"}, args...)...)
		return code, errs
	}
	// The input folder has the output folder; the second time it has files too.
	for _, in := range []string{data, link, filepath.Join(data, "*")} {
		if code, errs := job(in, "--out", out, "--overwrite"); code != 0 {
			t.Fatalf("%s: exit code %d: %s", in, code, errs)
		}
	}
	part := filepath.Join(out, "outputs", "part-00000.parquet")
	before, err := os.ReadFile(part)
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range []string{out, filepath.Join(out, "outputs"), part, filepath.Join(link, "job", "outputs")} {
		code, errs := job(in, "--out", out, "--overwrite")
		if code != exitInput || !strings.Contains(errs, "choose another --out") || strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: exit code %d, %q", in, code, errs)
		}
	}
	if after, err := os.ReadFile(part); err != nil || string(after) != string(before) {
		t.Errorf("the input was changed: %v", err)
	}
}

// TestModelFolders: what is wrong with a model's folder is said before the
// output folder is made.
func TestModelFolders(t *testing.T) {
	write := func(dir string, files map[string][]byte) {
		for name, data := range files {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	prompts := filepath.Join(t.TempDir(), "prompts.parquet")
	if err := os.WriteFile(prompts, demo.Prompts(), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, want string
		change     func(dir string) error
	}{
		{"no template", "no chat template: give --raw", func(dir string) error {
			return os.Remove(filepath.Join(dir, "chat_template.jinja"))
		}},
		{"no tokenizer", "has no tokenizer.json", func(dir string) error {
			return os.Remove(filepath.Join(dir, "tokenizer.json"))
		}},
		{"list for config", "config.json: a JSON object is expected, not array", func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "config.json"), []byte("[]"), 0o666)
		}},
		{"folder for tokenizer", "tokenizer.json is not a file", func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "tokenizer.json")),
				os.Mkdir(filepath.Join(dir, "tokenizer.json"), 0o777))
		}},
	} {
		dir := t.TempDir()
		write(dir, demo.Files())
		if err := c.change(dir); err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(dir, "out")
		code, _, errs := glmbatch("run", prompts, "--model", dir, "--out", out)
		if code != exitInput || !strings.Contains(errs, c.want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: exit code %d, %q", c.name, code, errs)
		}
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%s: the folder was made", c.name)
		}
	}
}

// TestStandardInput: JSON lines from a pipe are a job's prompts, and the same lines
// are the same job.
func TestStandardInput(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a model")
	}
	out := filepath.Join(t.TempDir(), "out")
	for range 2 { // the second time the job is complete
		c := child(t, "run", "-", "--out", out, "--quiet", "--timeline", "off")
		c.Stdin = strings.NewReader(`{"prompt":"Capital of Japan?","id":1}` + "\n" +
			`{"prompt":"Add 1 and 2.","sampling_params":{"max_tokens":2}}`)
		text, _ := c.CombinedOutput()
		if code := c.ProcessState.ExitCode(); code != exitOK {
			t.Fatalf("exit code %d: %s", code, text)
		}
	}
	in, err := datasets.Open([]string{filepath.Join(out, "outputs", "part-00000.parquet")})
	if err != nil || in.Rows != 2 || !strings.HasPrefix(in.ColumnNames(), "prompt, id, sampling_params, response") {
		t.Errorf("%v, %+v", err, in)
	}
	if code, _, errs := glmbatch("run", "-", "x.parquet", "--out", out); code != exitInput ||
		!strings.Contains(errs, "- is standard input") {
		t.Errorf("exit code %d, %s", code, errs)
	}
}

// TestStandardOutput: all rows are printed, and nothing else, with or without a folder.
func TestStandardOutput(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a model")
	}
	for _, format := range []string{"arrow", "jsonl"} {
		args := []string{"run", "--demo", "--limit", "3", "--max-tokens", "2", "--max-errors", "3", "--stdout", format}
		code, printed, errs := glmbatch(args...)
		if code != 0 {
			t.Fatalf("%s: %s", format, errs)
		}
		if strings.Contains(errs, "written to") || strings.Contains(errs, "next:") ||
			strings.Contains(errs, os.TempDir()) || !strings.Contains(errs, "3 rows in ") {
			t.Errorf("%s: nothing is kept, and it says %s", format, errs)
		}
		in, err := datasets.OpenStream(strings.NewReader(printed), "printed")
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		if in.Rows != 3 || !strings.Contains(in.ColumnNames(), "response") {
			t.Errorf("%s: %d rows of %s", format, in.Rows, in.ColumnNames())
		}
		if code, again, errs := glmbatch(append(args, "--out", t.TempDir())...); code != 0 || again != printed {
			t.Errorf("%s: with a folder it prints other rows: %s", format, errs)
		}
	}
	// Formats that are printed at the end: the code is the job's, whether its rows are all
	// right, and all of them are printed.
	bad := filepath.Join(t.TempDir(), "p.jsonl")
	if err := os.WriteFile(bad, []byte(`{"prompt":"Count: 1"}`+"\n"+`{"prompt":null}`+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"csv", "openai"} {
		for errors, want := range map[string]int{"0": exitRowErrors, "1": exitOK} {
			code, out, errs := glmbatch("run", bad, "--max-tokens", "2", "--timeline", "off", "--quiet", "--max-errors",
				errors, "--stdout", format)
			rows := strings.Count(out, "null_prompt")
			if code == exitRowErrors && !strings.HasSuffix(errs, ": see error_code and error\n") {
				t.Errorf("%s: nothing is kept, and it says %s", format, errs)
			}
			if code != want || rows != 1 || strings.Count(out, "\n") < 2 {
				t.Errorf("%s, --max-errors %s: exit code %d, want %d: %q, %s", format, errors, code, want, out, errs)
			}
		}
	}
	if code, out, errs := glmbatch("run", "--demo", "--stdout", "xml"); code != exitInput || out != "" ||
		!strings.Contains(errs, `--stdout "xml"`) {
		t.Errorf("exit code %d, %q", code, errs)
	}
}

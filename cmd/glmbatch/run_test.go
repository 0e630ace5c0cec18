package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"glmbatch/datasets"
	"glmbatch/datasets/datasetstest"
	"glmbatch/datasets/demo"
)

// glmbatch runs the program in this process.
func glmbatch(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(context.Background(), args, &out, &errs)
	return code, out.String(), errs.String()
}

// asProgram makes the test binary the program; TestProgram is then its main.
const asProgram = "GLMBATCH_TEST_ARGUMENTS"

// ownArguments in its place: they are those of the test binary.
const ownArguments = "-"

func TestProgram(t *testing.T) {
	text := os.Getenv(asProgram)
	if text == "" {
		t.Skip("only as a child of other tests")
	}
	var args []string
	if text == ownArguments {
		args = flag.Args()
	} else if err := json.Unmarshal([]byte(text), &args); err != nil {
		t.Fatal(err)
	}
	os.Args = append([]string{"glmbatch"}, args...)
	main()
}

func child(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	text, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(os.Args[0], "-test.run=^TestProgram$")
	c.Env = append(os.Environ(), asProgram+"="+string(text))
	return c
}

func outputs(t *testing.T, dir string) []byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "outputs", "part-*.parquet"))
	if err != nil || len(files) != 1 {
		t.Fatalf("outputs of %s: %v, %v", dir, files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestRunDemo: limits that change nothing but speed give the same bytes.
func TestRunDemo(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a model")
	}
	base := []string{"run", "--demo", "--limit", "40", "--temperature", "0.8", "--n", "2", "--seed", "9"}
	first := t.TempDir()
	if code, _, errs := glmbatch(append(base, "--out", first)...); code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	} else if !strings.Contains(errs, "demo checkpoint in this program answers") ||
		!strings.Contains(errs, " report "+first) {
		t.Errorf("it said %q", errs)
	}
	want := outputs(t, first)
	for _, more := range [][]string{
		{"--max-seqs", "1"},
		{"--speculate", "3"},
		{"--speculate", "ngram:5", "--max-seqs", "7"},
		{"--max-batch-tokens", "17", "--max-seqs", "5"},
		{"--kv-tokens", "2048", "--timeline", "all", "--timeline-format", "arrow"},
	} {
		dir := t.TempDir()
		if code, _, errs := glmbatch(append(append(base, "--quiet", "--out", dir), more...)...); code != 0 ||
			errs != "" {
			t.Fatalf("%v: exit code %d: %s", more, code, errs)
		}
		if !bytes.Equal(outputs(t, dir), want) {
			t.Errorf("%v changes the output", more)
		}
	}
	for _, name := range []string{"_SUCCESS", "_manifest.json", "steps/part-00000.parquet",
		"timeline/part-00000.parquet"} {
		if _, err := os.Stat(filepath.Join(first, name)); err != nil {
			t.Error(err)
		}
	}
	spans, err := datasetstest.ReadAll[datasets.Span](filepath.Join(first, "timeline"))
	if err != nil {
		t.Fatal(err)
	}
	phases := map[string]bool{}
	for _, s := range spans {
		if s.Class == "host" {
			phases[s.Kernel] = true
		}
	}
	for _, name := range []string{"read", "tokenize", "schedule", "upload", "sample", "detokenize", "write"} {
		if !phases[name] {
			t.Errorf("the timeline has no host phase %s", name)
		}
	}
}

// row is what tests compare of an output row.
type row struct {
	ID       string `parquet:"id"`
	Response string `parquet:"response"`
	Row      int64  `parquet:"row_index"`
}

// TestKill kills a job at some moments, and lets it go on.
func TestKill(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a model")
	}
	base := []string{"run", "--demo", "--limit", "60", "--quiet", "--out"}
	whole, dir := t.TempDir(), t.TempDir()
	if code, _, errs := glmbatch(append(base, whole)...); code != 0 {
		t.Fatal(errs)
	}
	for _, wait := range []time.Duration{20, 150, 300, 500} {
		c := child(t, append(base, dir)...)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(wait * time.Millisecond)
		_ = c.Process.Kill() // it may have ended
		_ = c.Wait()
	}
	if code, _, errs := glmbatch(append(base, dir)...); code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	want, err := datasetstest.ReadAll[row](filepath.Join(whole, "outputs"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := datasetstest.ReadAll[row](filepath.Join(dir, "outputs"))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(want, got) {
		t.Errorf("%d rows after kills, want %d, or others", len(got), len(want))
	}
	left, err := filepath.Glob(filepath.Join(dir, "*", ".*.tmp"))
	if err != nil || len(left) > 0 {
		t.Errorf("unfinished files are left: %v, %v", left, err)
	}
}

func TestRunErrors(t *testing.T) {
	dir := t.TempDir()
	prompts := filepath.Join(dir, "prompts.parquet")
	if err := os.WriteFile(prompts, demo.Prompts(), 0o666); err != nil {
		t.Fatal(err)
	}
	torn := filepath.Join(dir, "torn.parquet")
	if err := os.WriteFile(torn, demo.Prompts()[:5000], 0o666); err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(dir, "foreign")
	if err := datasets.WriteFile(filepath.Join(foreign, "thesis.doc"), nil); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out")
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"run"}, exitInput, "no prompts"},
		{[]string{"run", prompts}, exitInput, "--out DIR is missing"},
		{[]string{"run", "--demo", prompts, "--out", out}, exitInput, "--demo brings its own prompts"},
		{[]string{"run", "missing.parquet", "--out", out}, exitInput, "missing.parquet: no such file"},
		{[]string{"run", dir + "/*.none", "--out", out}, exitInput, "matches no Parquet file"},
		{[]string{"run", torn, "--out", out}, exitInput, "torn.parquet: the Parquet file is cut off"},
		{[]string{"run", prompts, "--out", out, "--prompt-column", "question"}, exitInput,
			`prompts.parquet: no column "question"; the columns are id, task, system, prompt, expected`},
		{[]string{"run", prompts, "--out", out, "--temperature", "-1"}, exitInput,
			"--temperature: -1 is not a number from 0 to 100"},
		{[]string{"run", prompts, "--out", out, "--timeline", "some"}, exitInput, "--timeline"},
		{[]string{"run", prompts, "--out", out, "--tp", "3"}, exitInput, "--tp 3: it must be 1, 2, 4 or 8"},
		{[]string{"run", prompts, "--out", out, "--shard", "2/2"}, exitInput, "--shard"},
		{[]string{"run", prompts, "--out", out, "--model", filepath.Join(dir, "none")}, exitInput, "none"},
		{[]string{"run", prompts, "--out", foreign}, exitInput, "choose another --out"},
		{[]string{"run", prompts, "--out", out, "--chat-template-kwargs", "[1]"}, exitInput, "is not a JSON object"},
		{[]string{"run", prompts, "--out", out, "--chat-template-kwargs", `{"enable_thinking": true}`, "--thinking",
			"off"}, exitInput, "are the same: give one"},
		{[]string{"run", prompts, "--out", out, "--chat-template", "rag"}, exitInput,
			`no template "rag"; there are ["default"]`},
		{[]string{"run", prompts, "--out", out, "--chat-template", "./rag.jinja"}, exitInput, "rag.jinja"},
		{[]string{"run", prompts, "--out", out, "--raw", "--chat-template", "rag"}, exitInput,
			"--raw uses no chat template"},
		{[]string{"run", prompts, "--show-prompt", "5000"}, exitInput, "there is no row 5000"},
	} {
		code, _, errs := glmbatch(c.args...)
		if code != c.code || !strings.Contains(errs, c.says) || strings.Count(errs, "\n") > 2 {
			t.Errorf("%v: exit code %d, %q; want %d, %q", c.args, code, errs, c.code, c.says)
		}
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a refused command made the output folder")
	}
	template := filepath.Join(dir, "own.jinja")
	if err := os.WriteFile(template, []byte("{{ mood }}: {{ messages[-1].content }}"), 0o666); err != nil {
		t.Fatal(err)
	}
	code, text, errs := glmbatch("run", "--demo", "--show-prompt", "0", "--chat-template", template,
		"--chat-template-kwargs", `{"mood": "glad"}`)
	if code != 0 || !strings.HasPrefix(text, "glad: ") || !strings.Contains(errs, "row 0: ") {
		t.Errorf("a row's prompt: exit code %d, %s%s", code, text, errs)
	}
	code, text, errs = glmbatch("run", "--demo", "--dry-run")
	if code != 0 || !strings.Contains(text, "prompt tokens    25,314") {
		t.Errorf("dry run: exit code %d, %s%s", code, text, errs)
	}
}

// What does not fit is said in one line: how much, of what, and what to do. A job is
// refused before anything is loaded or written.
func TestRunOutOfMemory(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	for _, c := range []struct{ args, want []string }{
		{[]string{"run", "--demo", "--device", "cpu", "--out", out, "--kv-tokens", "2000000000"},
			[]string{"caches of 2,000,000,000 tokens (--kv-tokens) take 2.69 TB on this machine", "has room for",
				"are left alone", "weights and steps of 8 ranks take"}},
		{[]string{"run", "--demo", "--device", "cpu", "--dry-run", "--kv-tokens", "2000000000"},
			[]string{"take 2.69 TB"}},
		{[]string{"bench", "--config", "tiny", "--device", "cpu", "--machine", "h200", "--kv-slots", "1000000000"},
			[]string{"cache of", "layer 0", "out of device memory", "bytes wanted"}},
	} {
		code, _, errs := glmbatch(c.args...)
		last := errs[strings.LastIndex(strings.TrimSpace(errs), "\n")+1:]
		if code != exitDevice {
			t.Errorf("%v: exit code %d, want %d", c.args, code, exitDevice)
		}
		for _, want := range append(c.want, "try a smaller --kv-", "glmbatch doctor") {
			if !strings.Contains(last, want) {
				t.Errorf("%v: %q does not say %q", c.args, last, want)
			}
		}
	}
	if _, err := os.Stat(out); err == nil {
		t.Errorf("a job that was refused left %s", out)
	}
}

func TestFaultsAreChecked(t *testing.T) {
	for fault, want := range map[string]string{"hang": `fault "hang?"`, "hang:x:1": `fault "hang?"`,
		"fire:0:1": `fault "fire"`} {
		if code, _, errs := glmbatch("run", "--demo", "--out", t.TempDir(), "--inject-fault", fault); code !=
			exitInput || !strings.Contains(errs, want) {
			t.Errorf("%s: exit code %d, %s", fault, code, errs)
		}
	}
}

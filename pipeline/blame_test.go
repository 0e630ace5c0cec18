package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"glmbatch/datasets"
	"glmbatch/datasets/demo"
	"glmbatch/engine"
	"glmbatch/kernels"
)

// The environment of the child process of TestQuarantine.
const (
	blameDir  = "GLMBATCH_BLAME_DIR"
	blameHow  = "GLMBATCH_BLAME_HOW"
	blameFile = "GLMBATCH_BLAME_FILE"
)

// guilty are the rows whose steps end badly.
var guilty = []int64{17, 333}

// faulty is an engine whose steps with some rows end badly. A step has some of the
// requests only, as an engine's steps have.
type faulty struct {
	stub
	aboard *Aboard
	how    string // panic, signal, kill, device; "": they end well
	steps  int
	added  int
	most   int // requests that a step had
	alone  int // steps with one request
}

func (e *faulty) Add(r engine.Request) error {
	e.added++
	return e.stub.Add(r)
}

func (e *faulty) Step() ([]engine.Token, error) {
	const inStep = 8
	e.steps++
	all := e.seqs
	e.seqs = slices.Clone(all[:min(inStep, len(all))])
	rest := all[len(e.seqs):]
	var ids []int64
	bad := false
	for _, q := range e.seqs {
		ids = append(ids, q.ID)
		for _, row := range guilty {
			bad = bad || q.Sampling.Seed == uint64(SampleSeed(0, row, 0, nil))
		}
	}
	e.most = max(e.most, len(ids))
	if len(all) == 1 {
		e.alone++
	}
	if err := e.aboard.OnLaunch(ids); err != nil {
		return nil, err
	}
	if bad {
		switch e.how {
		case "panic":
			done := make(chan struct{})
			go func() { defer close(done); panic("index out of range in some kernel") }() // as a rank's would
			<-done
		case "signal":
			_ = syscall.Kill(os.Getpid(), syscall.SIGSEGV)
			select {}
		case "kill":
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		case "device":
			return nil, fmt.Errorf("step %d: %w: it took longer than a minute", e.steps, kernels.ErrDevice)
		}
	}
	tokens, err := e.stub.Step()
	e.seqs = append(e.seqs, rest...)
	return tokens, err
}

var loadedText = sync.OnceValues(func() (Text, error) { return LoadText(demo.Files(), TextOptions{}) })

// sharedText is one for all tests that run many jobs: it takes its time to load.
func sharedText(t testing.TB) Text {
	t.Helper()
	text, err := loadedText()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// runBlamed runs the job of TestQuarantine in a folder.
func runBlamed(t testing.TB, path, dir, how string, o FolderOptions) (*Job, error) {
	t.Helper()
	return runBlamedWith(t, Options{Raw: true, TokenIDs: true}, path, dir, how, 0, o)
}

// runBlamedWith stops the job after so many steps; 0: it does not.
func runBlamedWith(t testing.TB, opt Options, path, dir, how string, until int, o FolderOptions) (*Job, error) {
	t.Helper()
	opt.InFlight, opt.PartRows = 32, 90
	in, err := datasets.Open([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPlan(in, opt)
	if err != nil {
		t.Fatal(err)
	}
	f, err := OpenFolder(dir, &Manifest{Settings: p.Settings(), Input: in.Files, FromRow: p.From, ToRow: p.To}, o)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	j := &Job{Plan: p, Text: sharedText(t), Folder: f, Counts: &Counts{}}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	e := &faulty{stub: stub{vocab: 2000, length: 9}, aboard: f.Aboard(), how: how}
	e.onStep = func(step int) {
		if step == until {
			cancel()
		}
	}
	j.Engine = e
	if f.Finished() {
		return j, j.Finish()
	}
	return j, j.Run(ctx)
}

// TestBlameChild is the child.
func TestBlameChild(t *testing.T) {
	dir := os.Getenv(blameDir)
	if dir == "" {
		t.Skip("only as a child of TestQuarantine")
	}
	if _, err := runBlamed(t, os.Getenv(blameFile), dir, os.Getenv(blameHow), FolderOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestQuarantine: a row whose steps crash the program, or fail, has an error after two
// of them, and no other row has. A process that somebody kills is nobody's fault.
func TestQuarantine(t *testing.T) {
	dir := t.TempDir()
	path := benchInput(t, dir, 400)
	whole := filepath.Join(dir, "whole")
	if _, err := runBlamed(t, path, whole, "", FolderOptions{}); err != nil {
		t.Fatal(err)
	}
	want := readOut(t, whole)
	for how, code := range map[string]string{"panic": Crashed, "signal": Crashed, "device": StepFailed, "kill": ""} {
		out := filepath.Join(dir, how)
		var err error
		runs := 0
		for ; ; runs++ {
			if how == "device" {
				_, err = runBlamed(t, path, out, how, FolderOptions{})
			} else {
				c := exec.Command(os.Args[0], "-test.run=^TestBlameChild$")
				c.Env = append(os.Environ(), blameDir+"="+out, blameHow+"="+how, blameFile+"="+path)
				var text bytes.Buffer
				c.Stdout, c.Stderr = &text, &text
				if err = c.Run(); err != nil && strings.Contains(text.String(), "--- FAIL") {
					t.Fatal(text.String())
				}
			}
			if err == nil || runs == 9 || how == "kill" && runs == 3 {
				break
			}
		}
		if how == "kill" { // for as long as it is killed: nothing is wrong with the row
			if err == nil {
				t.Error("killed: it ended")
			}
			if _, err := runBlamed(t, path, out, "", FolderOptions{}); err != nil {
				t.Fatal(err)
			}
		} else if err != nil || runs > 2*len(guilty) {
			t.Fatalf("%s: %v after %d runs", how, err, runs)
		}
		checkQuarantine(t, how, code, want, readOut(t, out))
		m, err := readManifest(out)
		if err != nil {
			t.Fatal(err)
		}
		if n := m.Counts.Codes[code]; code != "" && n != int64(len(guilty)) || m.Counts.Errors != n {
			t.Errorf("%s: counts %+v", how, m.Counts)
		}
	}
}

// checkQuarantine compares rows: the guilty have an error, all others are as they were.
func checkQuarantine(t *testing.T, how, code string, want, have []outRow) {
	t.Helper()
	if len(want) != len(have) {
		t.Fatalf("%s: %d rows, want %d", how, len(have), len(want))
	}
	codes := map[string]int{}
	for i := range want {
		if code != "" && slices.Contains(guilty, want[i].Row) {
			codes[have[i].Code]++
			if have[i].Response != "" || len(have[i].Tokens) > 0 || have[i].Reason != reasonError {
				t.Errorf("%s: row %d is %+v", how, want[i].Row, have[i])
			}
		} else if d := cmp.Diff(want[i], have[i]); d != "" {
			t.Errorf("%s: row %d:\n%s", how, want[i].Row, d)
		}
	}
	if code != "" && !maps.Equal(codes, map[string]int{code: len(guilty)}) {
		t.Errorf("%s: error codes %v", how, codes)
	}
}

// TestSuspectsRunAlone: after a step that failed its rows run one at a time, the others
// as ever.
func TestSuspectsRunAlone(t *testing.T) {
	dir := t.TempDir()
	path := benchInput(t, dir, 400)
	out := filepath.Join(dir, "out")
	if _, err := runBlamed(t, path, out, "device", FolderOptions{}); !errors.Is(err, kernels.ErrDevice) {
		t.Fatal(err)
	}
	j, err := runBlamed(t, path, out, "", FolderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if e := j.Engine.(*faulty); e.most != 8 || e.alone < 8 || e.alone > 8*9+9 {
		t.Errorf("%d in a step at most, %d steps with one: the 8 rows of the step that failed run alone", e.most, e.alone)
	}
	if n := j.Counts.Errors.Load(); n != 0 {
		t.Errorf("%d errors", n)
	}
}

// TestRetryErrors: rows whose error may pass run again, and no others; then all is as if
// they had had none, to the bytes, also where that is interrupted.
func TestRetryErrors(t *testing.T) {
	dir := t.TempDir()
	path := killRows(t, dir, 400)
	for name, o := range map[string]Options{
		"plain":   {Raw: true},
		"all":     {Raw: true, TokenIDs: true, Logprobs: true, Check: "expected", CheckBy: "id", Params: Params{N: 2, Sampling: engine.Sampling{Logprobs: 2}}, OnOverlong: OverlongTail, Context: 40},
		"renamed": {Raw: true, TokenIDs: true, Logprobs: true, Names: datasets.Naming{Prefix: "x_", Response: "answer"}},
	} {
		whole := filepath.Join(dir, name+" whole")
		j, err := runBlamedWith(t, o, path, whole, "", 0, FolderOptions{})
		if err != nil {
			t.Fatal(name, err)
		}
		files, counts := result(t, whole)
		all := j.Engine.(*faulty).added
		broken := filepath.Join(dir, name)
		for runs := 0; ; runs++ {
			if j, err = runBlamedWith(t, o, path, broken, "device", 0, FolderOptions{}); err == nil {
				break
			} else if runs > 9 {
				t.Fatal(name, err)
			}
		}
		if n := j.Counts.Codes()[StepFailed]; n != int64(len(guilty)) {
			t.Fatalf("%s: %d errors", name, n)
		}
		var complete *CompleteError
		if _, err := runBlamedWith(t, o, path, broken, "", 0, FolderOptions{}); !errors.As(err, &complete) {
			t.Errorf("%s: a complete job without the flag: %v", name, err)
		}
		for _, stops := range []int{0, 3} {
			out := filepath.Join(dir, fmt.Sprint(name, stops))
			if err := os.CopyFS(out, os.DirFS(broken)); err != nil {
				t.Fatal(err)
			}
			added := 0
			for retry := true; ; retry = false {
				j, err := runBlamedWith(t, o, path, out, "", stops, FolderOptions{Retry: retry})
				if j != nil {
					added += j.Engine.(*faulty).added
				}
				if err == nil {
					break
				}
				if stops++; stops > 30 || !errors.Is(err, ErrInterrupted) {
					t.Fatal(name, stops, err)
				}
			}
			if most := len(guilty) * 3 * (1 + stops); added == 0 || added > most || added > all/2 {
				t.Errorf("%s: %d of %d requests were run again, want at most %d", name, added, all, most)
			}
			have, now := result(t, out)
			if !maps.Equal(files, have) {
				t.Errorf("%s, %d stops: the files are not those of a job without errors", name, stops)
			}
			if d := cmp.Diff(counts, now); d != "" {
				t.Errorf("%s, %d stops: counts\n%s", name, stops, d)
			}
			if _, err := runBlamedWith(t, o, path, out, "", 0, FolderOptions{Retry: true}); !errors.As(err, &complete) {
				t.Errorf("%s: again with nothing that may pass: %v", name, err)
			}
		}
	}
	// A job that is not complete: the error is in the journal only.
	whole, out := filepath.Join(dir, "plain whole"), filepath.Join(dir, "incomplete")
	files, _ := result(t, whole)
	for range 3 {
		if _, err := runBlamed2(t, path, out, "device", false); err == nil {
			t.Fatal("it is complete")
		}
	}
	j, err := runBlamed2(t, path, out, "", true)
	if err != nil {
		t.Fatal(err)
	}
	have, counts := result(t, out)
	if !maps.Equal(files, have) || counts.Codes[StepFailed] != 0 || j.Engine.(*faulty).added > 100 {
		t.Errorf("an incomplete job: counts %+v, %d run", counts, j.Engine.(*faulty).added)
	}
}

func runBlamed2(t *testing.T, path, out, how string, retry bool) (*Job, error) {
	return runBlamedWith(t, Options{Raw: true}, path, out, how, 0, FolderOptions{Retry: retry})
}

// TestWrittenFields: an input's column is none of results, whatever it is called.
func TestWrittenFields(t *testing.T) {
	type row struct {
		Prompt    string   `parquet:"prompt"`
		Calls     []string `parquet:"tool_calls,list"`
		Truncated int32    `parquet:"truncated_tokens"`
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "prompts.parquet")
	w, err := datasets.Create[row](path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Write([]row{{"a", []string{"x"}, 7}, {"b", nil, 9}}), w.Close()); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out")
	if _, err := runBlamedWith(t, Options{Raw: true}, path, out, "", 0, FolderOptions{}); err != nil {
		t.Fatal(err)
	}
	in, err := datasets.Open([]string{filepath.Join(out, datasets.OutputsDir, "part-00000.parquet")})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	have := newWrittenFields(in).fields
	for _, name := range []string{"tool_calls", "truncated_tokens"} {
		if f, ok := have[name]; ok {
			t.Errorf("the input's column %s is taken for one of results", f.Name)
		}
	}
	if _, ok := have["seed"]; !ok {
		t.Error("the seed is not found")
	}
}

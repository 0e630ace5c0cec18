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
	"glmbatch/kernels/cpu"
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
	how    string // panic, signal, kill, sent, elsewhere, device; "": they end well
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
	if row, ok := e.aboard.Alone(); ok { // as the program does
		if err := datasets.WriteFile(captureOf(filepath.Dir(e.aboard.dir), row), nil); err != nil {
			return nil, err
		}
	}
	if bad {
		switch e.how {
		case "panic":
			done := make(chan struct{})
			go func() { defer close(done); crashInDevice() }() // as a rank's would
			<-done
		case "elsewhere":
			go func() { panic("index out of range in what writes files") }()
			select {}
		case "signal":
			faultInDevice()
		case "sent":
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

// crashInDevice panics in a device's code.
func crashInDevice() {
	d, _ := cpu.Open(1, cpu.Options{Fault: cpu.Fault{Kind: cpu.Panicking}})
	_ = d[0].Start(nil, nil, kernels.Fetch{})
}

// faultInDevice makes a device's code read a file that is shorter than what is mapped.
func faultInDevice() {
	d, _ := cpu.Open(1, cpu.Options{})
	const n = 1 << 20
	b, _ := d[0].Alloc(n, kernels.Replicated)
	f, _ := os.CreateTemp("", "")
	_ = os.Remove(f.Name())
	_ = f.Truncate(n)
	data, _ := syscall.Mmap(int(f.Fd()), 0, n, syscall.PROT_READ, syscall.MAP_SHARED)
	_ = f.Truncate(0)
	_ = d[0].Upload(b, data)
}

// captureOf is where the last step of a row that ran alone is.
func captureOf(dir string, row int64) string {
	return filepath.Join(dir, datasets.CapturesDir, datasets.RowCapture(row))
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
// of them, and no other row has. A process that somebody kills is nobody's fault, nor is
// one that crashes elsewhere while a step is on its way.
func TestQuarantine(t *testing.T) {
	dir := t.TempDir()
	path := benchInput(t, dir, 400)
	whole := filepath.Join(dir, "whole")
	if _, err := runBlamed(t, path, whole, "", FolderOptions{}); err != nil {
		t.Fatal(err)
	}
	want := readOut(t, whole)
	for how, code := range map[string]string{"panic": Crashed, "signal": Crashed, "device": StepFailed, "kill": "",
		"sent": "", "elsewhere": ""} {
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
			if err == nil || runs == 9 || code == "" && runs == 3 {
				break
			}
		}
		if code == "" { // for as long as that goes on: nothing is wrong with the row
			if err == nil {
				t.Errorf("%s: it ended", how)
			}
			if _, err := runBlamed(t, path, out, "", FolderOptions{}); err != nil {
				t.Fatal(err)
			}
		} else if err != nil || runs > 2*len(guilty) {
			t.Fatalf("%s: %v after %d runs", how, err, runs)
		}
		checkQuarantine(t, how, code, want, readOut(t, out))
		kept, _ := filepath.Glob(filepath.Join(out, datasets.CapturesDir, "*"))
		if code == "" && len(kept) > 0 || code != "" &&
			(len(kept) != len(guilty) || kept[0] != captureOf(out, guilty[0])) {
			t.Errorf("%s: captures %v", how, kept)
		}
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
			if !strings.HasSuffix(have[i].Error, "; its step is in captures/"+datasets.RowCapture(want[i].Row)) {
				t.Errorf("%s: row %d: %s", how, want[i].Row, have[i].Error)
			}
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

// TestCrashOfStep: what the Go runtime writes says whether a step was the reason.
func TestCrashOfStep(t *testing.T) {
	const (
		inPanic = "panic({0x4960a0?, 0x4b7718?})\n\t/usr/local/go/src/runtime/panic.go:860 +0x13a\n"
		inRank  = "glmbatch/kernels/ranks.(*Group).each.func1()\n\t/src/group.go:210 +0x25\n"
		inKeep  = "glmbatch/pipeline.(*keeper).take(0xc000)\n\t/src/keeper.go:70 +0x25\n"
		created = "created by glmbatch/pipeline.(*Job).run in goroutine 1\n\t/src/job.go:107 +0x25\n"
	)
	first := func(head, stack string) string {
		return head + "\n\ngoroutine 34 gp=0x1 m=3 mp=0x2 [running]:\n" + stack + "\ngoroutine 35 [select]:\n" + inRank
	}
	for _, c := range []struct {
		name, text string
		want       bool
	}{
		{"a panic in a kernel", first("panic: runtime error: index out of range", inPanic+inRank), true},
		{"of a goroutine that a device began",
			first("panic: x", inPanic+strings.Replace(inRank, "glmbatch", "created by glmbatch", 1)), true},
		{"a panic in what writes, while a rank waits",
			first("panic: runtime error: index out of range", inPanic+inKeep+created), false},
		{"a panic in a library that the writer calls",
			first("panic: x", "github.com/parquet-go/parquet-go.x()\n\t/x.go:1\n"+inKeep), false},
		{"a panic that has another's text",
			first("panic: first\n\tgoroutine 5 [running]:\n\tglmbatch/engine.fake()\n\tpanic: second", inKeep), false},
		{"a panic in the command", first("panic: x", "main.(*runFlags).run(0x1)\n\t/src/run.go:5\n"), false},
		{"maps", first("fatal error: concurrent map writes",
			"internal/runtime/maps.fatal({0x4b04e0?, 0x0?})\n\t/x.go:1\n"+inKeep), false},
		{"a fault of memory in C",
			first("SIGSEGV: segmentation violation\nPC=0x40826e m=3 sigcode=1 addr=0x0\nsignal arrived during cgo "+
				"execution", "runtime.cgocall(0x1)\n\t/x.go:1\n"+inRank), true},
		{"abort in C", first("SIGABRT: abort\nPC=0x40826e m=3 sigcode=18446744073709551610",
			"runtime.cgocall(0x1)\n\t/x.go:1\n"+inRank), true},
		{"a thread of the driver's",
			"SIGSEGV: segmentation violation\nPC=0x40826e m=3 sigcode=1 addr=0x0\n\ngoroutine 0 gp=0x1 m=3 mp=0x2 " +
				"[idle]:\n\ngoroutine 1 [select]:\n" + inKeep, true},
		{"a signal that somebody sent", first("SIGSEGV: segmentation violation\nPC=0x40826e m=0 sigcode=0 addr=0x7252",
			inRank), false},
		{"quit", first("SIGQUIT: quit\nPC=0x40826e m=0 sigcode=0", inRank), false},
		{"a stack that is full",
			first("runtime: goroutine stack exceeds 1000000000-byte limit\nfatal error: stack overflow\n\nruntime "+
				"stack:\nruntime.throw()", inKeep), false},
		{"a line alone", "fatal error: fault", true},
	} {
		if got := crashOfStep(c.text); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
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
		t.Errorf("%d in a step at most, %d steps with one: the 8 rows of the step that failed run alone",
			e.most, e.alone)
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
		"plain": {Raw: true},
		"all": {Raw: true, TokenIDs: true, Logprobs: true, Check: "expected", CheckBy: "id",
			Params: Params{N: 2, Sampling: engine.Sampling{Logprobs: 2}}, OnOverlong: OverlongTail, Context: 40},
		"renamed": {Raw: true, TokenIDs: true, Logprobs: true,
			Names: datasets.Naming{Prefix: "x_", Response: "answer"}},
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
			if kept, _ := filepath.Glob(filepath.Join(out, datasets.CapturesDir, "*")); len(kept) > 0 {
				t.Errorf("%s, %d stops: captures %v of rows that have no error", name, stops, kept)
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

package pipeline

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"glmbatch/datasets"
	"glmbatch/engine"
)

// The environment of the child process of TestKills, and what asks for more of them:
// GLMBATCH_KILLS says how many kills at random moments, GLMBATCH_KILL_CALLS at how many
// of each of the system calls that change files (strace is needed).
const (
	killDir   = "GLMBATCH_KILL_DIR"
	killInput = "GLMBATCH_KILL_INPUT"
	killLog   = "GLMBATCH_KILL_LOG"

	moreKills = "GLMBATCH_KILLS"
	killCalls = "GLMBATCH_KILL_CALLS"
)

// killRow is an input row of jobs that are killed: some have errors, some several
// samples, logprobs or stop strings, and the first is long.
type killRow struct {
	ID       int64   `parquet:"id"`
	Prompt   *string `parquet:"prompt"`
	Expected string  `parquet:"expected"`
	Params   *string `parquet:"sampling_params"`
}

func killRows(t testing.TB, dir string, n int) string {
	t.Helper()
	path := filepath.Join(dir, "prompts.parquet")
	w, err := datasets.Create[killRow](path, nil)
	if err != nil {
		t.Fatal(err)
	}
	kinds := []string{`{"n":3}`, `{"logprobs":2}`, `{"stop":["e","a"]}`, `{"n":2,"stop":"ing"}`, `{"temperature":-1}`}
	var rows []killRow
	for i := range n {
		prompt := fmt.Sprintf("row %d of many", i)
		r := killRow{ID: int64(i), Prompt: &prompt, Expected: "x"}
		switch {
		case i == 0:
			long := `{"ignore_eos":true,"max_tokens":150}`
			r.Params = &long
		case i%7 == 0:
			r.Params = &kinds[i/7%len(kinds)]
		case i%31 == 0:
			r.Prompt = nil
		}
		rows = append(rows, r)
	}
	if err := errors.Join(w.Write(rows), w.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// killOptions make small parts, and a window that the long row fills at once.
func killOptions() Options {
	return Options{Raw: true, TokenIDs: true, Logprobs: true, Check: "expected", InFlight: 64, Window: 100,
		PartRows: 700, SyncInterval: killInterval}
}

const killInterval = 40 * time.Millisecond

// logged is a stub that takes its time and writes down which requests it finished when.
type logged struct {
	stub
	log   *os.File
	seeds map[int64]uint64
}

func (l *logged) Add(r engine.Request) error {
	l.seeds[r.ID] = r.Sampling.Seed
	if err := l.stub.Add(r); err != nil {
		return err
	}
	if r.Sampling.IgnoreEOS {
		l.seqs[len(l.seqs)-1].want = r.Sampling.MaxTokens
	}
	return nil
}

func (l *logged) Step() ([]engine.Token, error) {
	time.Sleep(time.Millisecond)
	tokens, err := l.stub.Step()
	var b []byte
	for _, t := range tokens {
		if t.Reason != engine.Going {
			b = binary.LittleEndian.AppendUint64(b, l.seeds[t.ID])
			b = binary.LittleEndian.AppendUint64(b, uint64(time.Now().UnixNano()))
			delete(l.seeds, t.ID)
		}
	}
	if l.log != nil {
		l.log.Write(b)
	}
	return tokens, err
}

// runKilled runs the job of TestKills in a folder.
func runKilled(t testing.TB, path, dir string, log *os.File) (*Job, error) {
	t.Helper()
	in, err := datasets.Open([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPlan(in, killOptions())
	if err != nil {
		t.Fatal(err)
	}
	f, err := OpenFolder(dir, &Manifest{Settings: p.Settings(), Input: in.Files, FromRow: p.From, ToRow: p.To},
		FolderOptions{})
	if err != nil {
		return nil, err
	}
	defer f.Close()
	j := &Job{Plan: p, Text: demoText(t), Engine: &logged{stub: stub{vocab: 2000, length: 9}, log: log,
		seeds: map[int64]uint64{}}, Folder: f, Counts: &Counts{}}
	if f.Finished() {
		return j, j.Finish()
	}
	recorded(j)
	return j, j.Run(context.Background())
}

// TestKillChild is the child.
func TestKillChild(t *testing.T) {
	dir := os.Getenv(killDir)
	if dir == "" {
		t.Skip("only as a child of TestKills")
	}
	log, err := os.OpenFile(os.Getenv(killLog), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	var complete *CompleteError
	if _, err := runKilled(t, os.Getenv(killInput), dir, log); err != nil && !errors.As(err, &complete) {
		t.Fatal(err)
	}
}

// result is what a complete job leaves: the bytes of its outputs, and its counts.
func result(t testing.TB, dir string) (map[string]string, ManifestCounts) {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		if strings.HasSuffix(rel, ".tmp") || strings.HasPrefix(rel, datasets.JournalDir) {
			t.Errorf("%s is left", rel)
		}
		if strings.HasPrefix(rel, datasets.OutputsDir+"/") {
			data, err := os.ReadFile(path)
			files[rel] = string(data)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	m, err := readManifest(dir)
	if err != nil || m.Status != StatusComplete {
		t.Fatalf("manifest %+v, %v", m, err)
	}
	return files, m.Counts
}

// TestKills: a job that is killed, at any moment, goes on with the same command until
// it is complete, and what it leaves has the bytes of a job that nobody disturbed. Of
// what was finished, only the last moments are done again.
func TestKills(t *testing.T) {
	rows, kills, calls := 1500, 10, 0
	if n, err := strconv.Atoi(os.Getenv(moreKills)); err == nil {
		rows, kills = 4000, n
	}
	if n, err := strconv.Atoi(os.Getenv(killCalls)); err == nil {
		calls = n
	}
	dir := t.TempDir()
	path := killRows(t, dir, rows)
	whole := filepath.Join(dir, "whole")
	k := &killer{path: path, rng: rand.New(rand.NewPCG(1, 2))}
	began := time.Now()
	if out, err := k.child(nil, whole, whole+".log").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	k.took = time.Since(began)
	k.files, k.counts = result(t, whole)
	if len(k.files) < 3 || k.counts.Errors == 0 || k.counts.Checked == 0 {
		t.Fatalf("%d parts, %+v: the test tests nothing", len(k.files), k.counts)
	}
	for jobs := 0; k.kills < kills; jobs++ {
		k.job(t, filepath.Join(dir, fmt.Sprint("job", jobs)), func() (string, int) { return "", 0 })
	}
	for _, call := range []string{"renameat", "fsync", "ftruncate", "unlinkat", "write", "pwrite64", "openat",
		"close", "mkdirat"} {
		for i := 1; i <= calls; i++ {
			at := i
			k.job(t, filepath.Join(dir, fmt.Sprint(call, i)), func() (string, int) { at *= 2; return call, at / 2 })
		}
	}
	t.Logf("%d kills, %d at calls: of what was finished, what had to be done again was at most %v old; %d of %d "+
		"samples were run again",
		k.kills, k.atCalls, k.oldest, k.again, k.samples)
}

type killer struct {
	path           string
	took           time.Duration // of an undisturbed child
	rng            *rand.Rand
	files          map[string]string
	counts         ManifestCounts
	kills, atCalls int
	oldest         time.Duration // at random moments: strace slows a run down
	samples, again int
}

// child is a process that runs the job in dir, under the words of before, and logs.
func (k *killer) child(before []string, dir, log string) *exec.Cmd {
	args := append(slices.Clone(before), os.Args[0], "-test.run=^TestKillChild$")
	c := exec.Command(args[0], args[1:]...)
	c.Env = append(os.Environ(), killDir+"="+dir, killInput+"="+k.path, killLog+"="+log)
	return c
}

// job kills a job until it is complete. at says at which system call, "" for a random
// moment.
func (k *killer) job(t *testing.T, dir string, at func() (string, int)) {
	t.Helper()
	log := dir + ".log"
	finished := map[uint64]time.Duration{} // by seed, how long before its run ended
	read := 0
	for tries := 0; ; tries++ {
		var before []string
		call, n := at()
		if call != "" {
			before = []string{"strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=" + call, "-e",
				fmt.Sprintf("inject=%s:signal=SIGKILL:when=%d", call, n)}
		}
		c := k.child(before, dir, log)
		var out bytes.Buffer
		c.Stdout, c.Stderr = &out, &out
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		if call == "" {
			// Each try gets more time than the last: where starting takes most of it, on a
			// busy machine, the job comes to its end too.
			limit := float64(k.took) * math.Pow(1.1, float64(tries))
			timer := time.AfterFunc(time.Duration(k.rng.Float64()*limit), func() { _ = c.Process.Kill() })
			defer timer.Stop()
		}
		err := c.Wait()
		ended := time.Now()
		if err == nil {
			break
		}
		if s := c.ProcessState.String(); !strings.Contains(s, "killed") && c.ProcessState.ExitCode() != 137 {
			t.Fatalf("%s, try %d: %s\n%s", dir, tries, s, out.String())
		}
		k.kills++
		if call != "" {
			k.atCalls++
		}
		read = k.read(t, log, read, finished, ended, call == "")
	}
	k.read(t, log, read, finished, time.Now(), false)
	files, counts := result(t, dir)
	if !maps.Equal(files, k.files) {
		t.Fatalf("%s: the outputs are not those of a job that was not killed: %v, %v", dir,
			slices.Sorted(maps.Keys(files)), slices.Sorted(maps.Keys(k.files)))
	}
	have, _ := json.Marshal(counts)
	want, _ := json.Marshal(k.counts)
	if !bytes.Equal(have, want) {
		t.Fatalf("%s: counts\n%s\n%s", dir, have, want)
	}
	os.RemoveAll(dir)
	os.Remove(log)
}

// read takes what a run has logged: what it finished that an earlier one had finished.
func (k *killer) read(t *testing.T, log string, from int, finished map[uint64]time.Duration, ended time.Time,
	random bool) int {
	t.Helper()
	data, err := os.ReadFile(log)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for ; from+16 <= len(data); from += 16 {
		seed := binary.LittleEndian.Uint64(data[from:])
		at := time.Unix(0, int64(binary.LittleEndian.Uint64(data[from+8:])))
		k.samples++
		if left, ok := finished[seed]; ok {
			k.again++
			k.oldest = max(k.oldest, left)
		}
		finished[seed] = 0
		if random {
			finished[seed] = ended.Sub(at)
		}
	}
	return from
}

// A journal that cannot be read is an error of the folder, which says how many positions
// its job has all the same.
func TestJournalThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	in, err := datasets.Open([]string{killRows(t, dir, 20)})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	o := killOptions()
	o.Context = 4096
	p, err := NewPlan(in, o)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out")
	open := func() error {
		f, err := OpenFolder(out, &Manifest{Settings: p.Settings(), Input: in.Files, FromRow: p.From, ToRow: p.To},
			FolderOptions{})
		if err != nil {
			return err
		}
		return f.Close()
	}
	if n := ContextOf(out); n != 0 {
		t.Errorf("%d positions before there is a job", n)
	}
	if err := open(); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(out, datasets.JournalDir)
	if err := errors.Join(os.RemoveAll(log), os.WriteFile(log, []byte("x"), 0o666)); err != nil {
		t.Fatal(err)
	}
	if err := open(); !errors.Is(err, ErrOutput) {
		t.Errorf("a file in the place of the journal: %v", err)
	}
	if n := ContextOf(out); n != 4096 {
		t.Errorf("the job has %d positions", n)
	}
}

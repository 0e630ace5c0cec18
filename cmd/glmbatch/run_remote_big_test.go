package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zeebo/xxh3"

	"glmbatch/datasets"
	"glmbatch/stores/storestest"
)

// bigStore says how many MiB TestBigObjects takes through a bucket.
const bigStore = "GLMBATCH_S3_MIB"

// bigRow has a column that passes through and cannot be compressed.
type bigRow struct {
	Prompt string `parquet:"prompt"`
	Data   []byte `parquet:"data"`
}

// mostOfBig is how many MiB the process may have, however many it takes through: rows in
// flight and rows that wait for their turn have a quarter of a GiB each.
const mostOfBig = 1000

// TestBigObjects takes rows through an object store that refuses, cuts and is slow: in
// and out in a memory that does not grow with them.
func TestBigObjects(t *testing.T) {
	mib, err := strconv.Atoi(os.Getenv(bigStore))
	if err != nil {
		t.Skip("set " + bigStore)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "in.parquet")
	w, err := datasets.Create[bigRow](path, nil)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.NewChaCha8([32]byte{9})
	want := xxh3.New()
	for i := range mib {
		r := bigRow{"Count: " + strconv.Itoa(i), make([]byte, 1<<20)}
		_, _ = random.Read(r.Data) // never fails
		_, _ = want.Write(r.Data)
		if err := w.Write([]bigRow{r}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := storestest.New(t)
	s.Put(t, "in.parquet", data)
	s.Faults = storestest.Faults{Refuse: 0.05, Reset: 0.05, Slow: 0.05, Seed: 5}
	c := child(t, "run", s.URL("in.parquet"), "--tp", "1", "--max-tokens", "1", "--timeline", "off", "--out",
		s.URL("out"), "--work-dir", filepath.Join(dir, "work"))
	var text bytes.Buffer
	c.Stdout, c.Stderr = &text, &text
	began := time.Now()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- c.Wait() }()
	most := 0 // kB: what the system says at the end is also of this process, before it began the child
	for running := true; running; {
		select {
		case err := <-ended:
			if running = false; err != nil {
				t.Fatalf("%v: %s", err, text.String())
			}
		case <-time.After(50 * time.Millisecond):
			most = max(most, residentKB(c.Process.Pid))
		}
	}
	have := xxh3.New()
	out, bytesOut := t.TempDir(), 0
	for _, key := range s.Keys(t) {
		if name, ok := strings.CutPrefix(key, "out/outputs/"); ok {
			b := s.Get(t, key)
			bytesOut += len(b)
			if err := os.WriteFile(filepath.Join(out, name), b, 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	rows := 0
	err = datasets.Read(out, func(block []bigRow) error {
		for _, r := range block {
			rows++
			_, _ = have.Write(r.Data)
		}
		return nil
	})
	if err != nil || rows != mib || have.Sum64() != want.Sum64() {
		t.Errorf("%v: %d rows of %d", err, rows, mib)
	}
	if most>>10 > mostOfBig {
		t.Errorf("the process had %d MiB, more than %d", most>>10, mostOfBig)
	}
	t.Logf("%d MiB in, %d MiB out in %.1f s, %d faults; the process had %d MiB at most", len(data)>>20, bytesOut>>20,
		time.Since(began).Seconds(), s.Injected(), most>>10)
}

// residentKB is the most memory that a process has had; 0 where the system does not say.
func residentKB(pid int) (kb int) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	if _, after, ok := strings.Cut(string(status), "VmHWM:"); ok {
		_, _ = fmt.Sscan(after, &kb) // 0 says that it is no number
	}
	return kb
}

// TestTwoProcessesOneURL: on one machine the second is told that the first has it.
func TestTwoProcessesOneURL(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a model")
	}
	s := storestest.New(t)
	work := t.TempDir()
	args := []string{"run", "--demo", "--quiet", "--work-dir", work, "--out", s.URL("out")}
	c := child(t, args...)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = c.Process.Kill() // it runs
		_ = c.Wait()
	}()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		found, err := filepath.Glob(filepath.Join(work, "work", "*", datasets.ManifestFile))
		if err != nil {
			t.Fatal(err)
		}
		if len(found) > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("it never begins")
		}
	}
	if code, _, errs := glmbatch(args...); code != exitLocked ||
		!strings.Contains(errs, "another run has the folder, process ") {
		t.Errorf("exit code %d, %s", code, errs)
	}
}

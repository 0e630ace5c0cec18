package main

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"glmbatch/datasets"
	"glmbatch/kernels/cuda"
)

// A rank that hangs or faults ends the run in time with code 5; the same command
// without the fault goes on and gives what a run without it gives. Faults spoil a
// GPU for their process, so each run has one.
func TestFaultsAreResumed(t *testing.T) {
	if err := cuda.Available(); err != nil {
		t.Skip(err)
	}
	const limit = time.Second
	dir := t.TempDir()
	run := func(out string, more ...string) (code int, text string) {
		t.Helper()
		args := []string{"run", "--demo", "--limit", "40", "--tp", "2", "--device", "cuda", "--step-timeout",
			limit.String(), "--out", filepath.Join(dir, out)}
		c := child(t, append(args, more...)...)
		said, err := c.CombinedOutput()
		if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return c.ProcessState.ExitCode(), string(said)
	}
	if code, said := run("clean"); code != exitOK {
		t.Fatalf("exit code %d: %s", code, said)
	}
	want := responses(t, filepath.Join(dir, "clean"))
	for fault, says := range map[string][]string{"hang:1:30": {"step ", "rank 1", limit.String()},
		"address:0:30": {"step ", "rank 0", "GPU 0", "ILLEGAL_ADDRESS"}} {
		t.Run(fault, func(t *testing.T) {
			out := strings.ReplaceAll(fault, ":", "-")
			start := time.Now()
			code, said := run(out, "--inject-fault", fault)
			if took := time.Since(start); took > 15*limit {
				t.Errorf("it ended after %v", took)
			}
			for _, w := range says {
				if code != exitDevice || !strings.Contains(said, w) {
					t.Errorf("exit code %d, %q does not say %q", code, said, w)
				}
			}
			if code, said := run(out); code != exitOK || !strings.Contains(said, "going on with row") {
				t.Fatalf("exit code %d: %s", code, said)
			}
			if d := cmp.Diff(want, responses(t, filepath.Join(dir, out))); d != "" {
				t.Error(d)
			}
		})
	}
}

// responses are those of an output folder by row.
func responses(t *testing.T, dir string) map[string]string {
	t.Helper()
	type row struct {
		Row      int64  `parquet:"row_index"`
		Sample   int32  `parquet:"sample_index"`
		Response string `parquet:"response,optional"`
	}
	files, err := filepath.Glob(filepath.Join(dir, "outputs", "*.parquet"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no outputs in %s: %v", dir, err)
	}
	out := map[string]string{}
	for _, f := range files {
		err := datasets.Read(f, func(rows []row) error {
			for _, r := range rows {
				out[fmt.Sprint(r.Row, " ", r.Sample)] = r.Response
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

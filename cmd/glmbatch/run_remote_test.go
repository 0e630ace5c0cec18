package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"glmbatch/datasets"
	"glmbatch/datasets/datasetstest"
	"glmbatch/datasets/demo"
	"glmbatch/stores/storestest"
)

// TestObjectStore: prompts, checkpoint and output in a bucket whose server refuses,
// cuts and is slow give the rows of local files. A job that is there is complete, and
// shards are merged there.
func TestObjectStore(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a model")
	}
	s := storestest.New(t)
	s.Put(t, "in/k=1/p.parquet", demo.Prompts())
	s.Put(t, "in/k=1/_no.parquet", []byte("hidden"))
	for name, data := range demo.Files() {
		s.Put(t, "model/"+name, data)
	}
	s.Faults = storestest.Faults{Refuse: 0.05, Reset: 0.05, Slow: 0.05, Seed: 5}
	work := t.TempDir()
	base := []string{"run", s.URL("in/**/*.parquet"), "--limit", "20", "--max-tokens", "6", "--quiet",
		"--work-dir", work}
	run := func(want int, args ...string) string {
		t.Helper()
		code, out, errs := glmbatch(args...)
		if code != want {
			t.Fatalf("%v: exit code %d: %s%s", args, code, out, errs)
		}
		return out + errs
	}
	local := t.TempDir()
	prompts := filepath.Join(local, "k=1", "p.parquet")
	if err := datasets.WriteFile(prompts, demo.Prompts()); err != nil {
		t.Fatal(err)
	}
	run(0, "run", "file://"+prompts, "--limit", "20", "--max-tokens", "6", "--quiet", "--out",
		filepath.Join(local, "out"))
	want, err := datasetstest.ReadAll[mergedRow](filepath.Join(local, "out", "outputs"))
	if err != nil {
		t.Fatal(err)
	}
	same := func(prefix string) {
		t.Helper()
		dir := t.TempDir()
		for _, key := range s.Keys(t) {
			if name, ok := strings.CutPrefix(key, prefix+"/outputs/"); ok {
				if err := os.WriteFile(filepath.Join(dir, name), s.Get(t, key), 0o666); err != nil {
					t.Fatal(err)
				}
			}
		}
		got, err := datasetstest.ReadAll[mergedRow](dir)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: the rows differ:\n%s", prefix, d[:min(len(d), 2000)])
		}
	}
	out := []string{"--out", s.URL("job"), "--model", s.URL("model")}
	run(0, append(base, out...)...)
	same("job")
	if s.LastPut() != "job/_SUCCESS" {
		t.Errorf("%s is the last object", s.LastPut())
	}
	if left, err := filepath.Glob(filepath.Join(work, "work", "*")); err != nil || len(left) > 0 {
		t.Errorf("%v is left here, %v", left, err)
	}
	before := s.Puts()
	if run(0, append(base, out...)...); s.Puts() != before {
		t.Errorf("a complete job: %d objects written", s.Puts()-before)
	}
	if says := run(0, "run", s.URL("job"), "--dry-run", "--work-dir", work); !strings.Contains(says,
		" 20, 20 outputs") {
		t.Errorf("a job's folder as input: %q", says)
	}
	for _, shard := range []string{"1/2", "0/2"} {
		run(0, append(base, "--out", s.URL("cut"), "--shard", shard)...)
	}
	if says := run(0, "merge", s.URL("cut")); !strings.Contains(says, "2 shards merged: 20 input rows") {
		t.Errorf("merge says %q", says)
	}
	same("cut")
	if keys := s.Keys(t); slices.ContainsFunc(keys, func(k string) bool {
		return strings.HasPrefix(k, "cut/shards/") && strings.Contains(k, "/outputs/")
	}) {
		t.Errorf("rows are there twice: %v", keys)
	}
	s.Put(t, "foreign/thesis.doc", []byte("x"))
	if says := run(exitInput, append(base, "--out", s.URL("foreign"))...); !strings.Contains(says,
		"thesis.doc but no _manifest.json") {
		t.Errorf("a foreign prefix: %q", says)
	}
	if says := run(exitInput, "run", s.URL("none/*.parquet"), "--out", s.URL("x"), "--work-dir",
		work); !strings.Contains(says, "matches no object") {
		t.Errorf("no input: %q", says)
	}
	if s.Injected() < 5 {
		t.Errorf("%d faults: the test tests nothing", s.Injected())
	}
}

// TestRetryAtURL: rows of a complete job in a bucket run again whose error may pass, and
// what is there then is a job's in which they had none.
func TestRetryAtURL(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a model")
	}
	s := storestest.New(t)
	job := func(out string, more ...string) []string {
		return append([]string{"run", "--demo", "--limit", "5", "--tp", "1", "--device", "cpu", "--kv-tokens", "4096",
			"--max-tokens", "4", "--timeline", "off", "--quiet", "--work-dir", t.TempDir(), "--out", s.URL(out)},
			more...)
	}
	run := func(want int, args []string) {
		t.Helper()
		if code, _, errs := glmbatch(args...); code != want {
			t.Fatalf("%v: exit code %d: %s", args, code, errs)
		}
	}
	run(0, job("whole"))
	for range 2 {
		run(exitDevice, job("job", "--inject-fault", "error:0:2"))
	}
	run(exitRowErrors, job("job"))
	if keys := s.Keys(t); !slices.Contains(keys, "job/captures/row-00000000.arrow") {
		t.Errorf("no capture of the row: %v", keys)
	}
	run(exitRowErrors, job("job"))
	run(0, job("job", "--retry-errors"))
	run(0, job("job", "--retry-errors"))
	var want, have []string
	for _, key := range s.Keys(t) {
		if name, ok := strings.CutPrefix(key, "whole/"); ok && !strings.HasPrefix(name, "steps/") {
			want = append(want, name)
		}
		if name, ok := strings.CutPrefix(key, "job/"); ok && !strings.HasPrefix(name, "steps/") {
			have = append(have, name)
		}
	}
	if d := cmp.Diff(want, have); d != "" {
		t.Fatalf("objects:\n%s", d)
	}
	for _, name := range want {
		if strings.HasPrefix(name, "outputs/") && string(s.Get(t, "whole/"+name)) != string(s.Get(t, "job/"+name)) {
			t.Errorf("%s: other bytes than without errors", name)
		}
	}
}

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"glmbatch/datasets"
	"glmbatch/kernels/cuda"
	"glmbatch/pipeline"
	"glmbatch/stores/storestest"
)

// A step has as many tokens as the device is good at, unless the job says how many.
func TestUsualRows(t *testing.T) {
	m, err := (&runFlags{tp: 1}).openModel() // the demo's
	if err != nil {
		t.Fatal(err)
	}
	defer m.close()
	for _, c := range []struct {
		device     string
		said, want int
	}{{"cpu", 0, 512}, {"cuda", 0, 2048}, {"cuda", 33, 33}} {
		r := &runFlags{maxBatchTokens: c.said}
		r.device.kind = c.device
		if got := r.modelOptions(m).MaxRows; got != c.want {
			t.Errorf("%s, --max-batch-tokens %d: %d tokens a step, want %d", c.device, c.said, got, c.want)
		}
	}
}

// contextOf is how many positions a sequence has in the job of a folder.
func contextOf(t *testing.T, dir string) int {
	t.Helper()
	n := pipeline.ContextOf(dir)
	if n == 0 {
		t.Fatalf("%s has no job", dir)
	}
	return n
}

// TestContextStays: how long a sequence may be is the job's, whatever memory is free when
// it goes on, and one for all of its shards.
func TestContextStays(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a model")
	}
	const little, more, much = "136000000", "140000000", "8000000000"
	job := func(dir, memory string, more ...string) []string {
		return append([]string{"run", "--demo", "--limit", "12", "--tp", "1", "--device", "cpu", "--max-tokens", "4",
			"--timeline", "off", "-q", "--out", dir, "--inject-memory", memory}, more...)
	}
	out := filepath.Join(t.TempDir(), "out")
	if code, _, errs := glmbatch(job(out, more, "--inject-fault", "error:0:2")...); code != exitDevice {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	was := contextOf(t, out)
	if code, _, errs := glmbatch(job(out, little)...); code != exitInput || !strings.Contains(errs, "context was") {
		t.Errorf("with less memory: exit code %d: %s", code, errs)
	}
	if code, _, errs := glmbatch(job(out, much)...); code != 0 || contextOf(t, out) != was {
		t.Errorf("with more memory: exit code %d, context %d and %d: %s", code, was, contextOf(t, out), errs)
	}
	if code, _, errs := glmbatch(job(out, much, "--overwrite")...); code != 0 || contextOf(t, out) <= was {
		t.Errorf("anew: exit code %d, context %d and %d: %s", code, was, contextOf(t, out), errs)
	}

	shards := filepath.Join(t.TempDir(), "out")
	shard := func(i int) string { return filepath.Join(shards, datasets.Shard{Index: i, Of: 3}.Dir()) }
	if code, _, errs := glmbatch(job(shards, more, "--shard", "0/3")...); code != 0 || contextOf(t, shard(0)) != was {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	if code, _, errs := glmbatch(job(shards, much, "--shard", "1/3")...); code != 0 || contextOf(t, shard(1)) != was {
		t.Errorf("a machine with more memory: exit code %d, context %d: %s", code, contextOf(t, shard(1)), errs)
	}
	if code, _, errs := glmbatch(job(shards, little, "--shard", "2/3")...); code != exitDevice ||
		!strings.Contains(errs, "run all shards with --kv-tokens ") {
		t.Errorf("a machine with less memory: exit code %d: %s", code, errs)
	}

	// In an object store, each machine sees only what the others have uploaded.
	store := storestest.New(t)
	url := store.URL("job")
	apart := func(memory, shard string) []string {
		return job(url, memory, "--shard", shard, "--work-dir", t.TempDir())
	}
	far := func(i int) int {
		dir := t.TempDir()
		key := "job/" + filepath.ToSlash(datasets.Shard{Index: i, Of: 3}.Dir()) + "/" + datasets.ManifestFile
		if err := os.WriteFile(filepath.Join(dir, datasets.ManifestFile), store.Get(t, key), 0o666); err != nil {
			t.Fatal(err)
		}
		return contextOf(t, dir)
	}
	if code, _, errs := glmbatch(apart(more, "0/3")...); code != 0 || far(0) != was {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	if code, _, errs := glmbatch(apart(much, "1/3")...); code != 0 || far(1) != was {
		t.Errorf("a machine with more memory: exit code %d, context %d: %s", code, far(1), errs)
	}
	if code, _, errs := glmbatch(apart(little, "2/3")...); code != exitDevice ||
		!strings.Contains(errs, "in the shard at s3://") {
		t.Errorf("a machine with less memory: exit code %d: %s", code, errs)
	}
}

// TestFitUnknown: only memory that is not known is left to be found out in loading.
func TestFitUnknown(t *testing.T) {
	code, _, errs := glmbatch("run", "--demo", "--device", "cuda", "--ranks-per-gpu", "1", "--tp", "8", "--out",
		filepath.Join(t.TempDir(), "out"))
	if cuda.Available() != nil && (code != exitDevice ||
		!strings.Contains(errs,
			"8 ranks do not find a place on 1 GPUs with --ranks-per-gpu 1: raise --ranks-per-gpu")) {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"glmbatch/datasets"
	"glmbatch/pipeline"
)

// TestMain keeps what jobs leave in the user's cache folder out of it.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "glmbatch-cache-")
	if err != nil {
		panic(err)
	}
	os.Setenv("XDG_CACHE_HOME", dir)
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// TestDryRunEstimates: a dry run has time from the last job of the model, or from the one
// that is named, and says what the folder at --out is to this job.
func TestDryRunEstimates(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	out := filepath.Join(t.TempDir(), "out")
	base := []string{"run", "--demo", "--tp", "1", "--kv-tokens", "4096", "--max-seqs", "2", "--max-batch-tokens", "32"}
	dry := func(args ...string) string {
		return ends(t, exitOK, append(append(base[:len(base):len(base)], "--dry-run"), args...)...)
	}
	if s := dry("--limit", "5", "--out", out); !strings.Contains(s, "not known: no job of this model") ||
		!strings.Contains(s, out+": a new folder") {
		t.Error(s)
	}
	ends(t, exitOK, append(base[:len(base):len(base)], "--limit", "20", "--max-tokens", "8", "--out", out, "-q")...)
	for _, c := range []struct {
		args []string
		says []string
	}{
		{[]string{"--out", out, "--limit", "20", "--max-tokens", "8"},
			[]string{"time             about ", " tokens/s of ", "of this job, complete: 20 of 20 rows",
				"energy           not known"}},
		{[]string{"--out", out, "--limit", "21"}, []string{"a run is refused, as it is of another job: "}},
		{[]string{"--like", out, "--out", filepath.Join(out, "none")},
			[]string{"tokens/s of " + out + " (", "a new folder"}},
	} {
		s := dry(c.args...)
		for _, want := range c.says {
			if !strings.Contains(s, want) {
				t.Errorf("%v: no %q in %s", c.args, want, s)
			}
		}
	}
	if s := ends(t, exitInput, append(base[:len(base):len(base)], "--dry-run", "--like",
		t.TempDir())...); !strings.Contains(s, "--like: ") {
		t.Error(s)
	}
}

// TestEstimate: the interval has the usual time in it, and grows with what is allowed.
func TestEstimate(t *testing.T) {
	var steps []datasets.Step
	wall := int64(0)
	for i := range int64(1000) {
		s := datasets.Step{WallNS: 1_000_000 + 1000*i, Tokens: 10}
		steps, wall = append(steps, s), wall+s.WallNS
	}
	parts := partRates(steps, wall)
	if len(parts) < rateParts-1 || len(parts) > rateParts+1 || parts[0] <= parts[len(parts)-1] {
		t.Errorf("%v", parts)
	}
	joules := 0.5
	r := &rates{Tokens: 1000, Lo: 800, Hi: 1250, Response: 20, Joules: &joules}
	e := r.estimate(10_000, 100, 12_000)
	if e.Usual.Seconds() != 12 || e.Lo.Seconds() != 9.6 || e.Hi.Seconds() != 27.5 || e.Joules != 6000 ||
		e.JLo != 4800 || e.JHi != 13_750 {
		t.Errorf("%+v", e)
	}
}

// TestRatesOfSettings: what a model's speed follows from has rates of its own.
func TestRatesOfSettings(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	files := map[string]string{}
	for _, flag := range []string{"", "--kv-cache", "--act", "--dense-weights", "--activations", "--layout"} {
		file, err := ratesFile(&pipeline.Manifest{Settings: map[string]string{flag: "another"}})
		if err != nil {
			t.Fatal(err)
		}
		if was, there := files[file]; there {
			t.Errorf("%q and %q have one file", was, flag)
		}
		files[file] = flag
	}
}

package main

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

// A whole job has all its tokens, the shares of its time make it up, and what requests
// share is computed once.
func TestBenchJob(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a model")
	}
	args := []string{"bench", "--config", "tiny", "--set", "num_hidden_layers=2", "--tp", "2", "--ranks", "1",
		"--device", "cpu", "--job", "80/4", "--requests", "6", "--prefix", "70", "--groups", "2", "--seqs", "3",
		"--chunk", "100"}
	for _, sharing := range []string{"on", "off"} {
		code, text, errs := glmbatch(append(args, "--format", "json", "--prefix-sharing", sharing)...)
		if code != exitOK {
			t.Fatalf("exit code %d: %s", code, errs)
		}
		var r jobResult
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			t.Fatal(err)
		}
		if r.Input != 480 || r.Output != 24 || r.Steps < 4 || r.Seconds <= 0 || r.Links <= 0 || r.Preempted != 0 ||
			math.Abs(r.Prefill+r.Mixed+r.Decode-1) > 1e-9 {
			t.Errorf("%+v", r)
		}
		if want := map[string]int64{"on": 4 * 70, "off": 0}[sharing]; r.Shared != want {
			t.Errorf("--prefix-sharing %s: %d tokens shared, want %d", sharing, r.Shared, want)
		}
		if r.Rows <= 0 || r.Rows > 1 || r.Memory <= 0 || r.Memory > r.Peak || r.Peak > 1 {
			t.Errorf("occupancy %+v", r.jobFigures)
		}
	}
	// A rank of two with requests of its own stands for both.
	code, text, errs := glmbatch(append(args, "--layout", "throughput", "--format", "json")...)
	var half jobResult
	if err := json.Unmarshal([]byte(text), &half); err != nil || code != exitOK || half.Input != 480 ||
		half.Output != 24 || half.Alike != 2 || half.Seqs != 2 || half.Links <= 0 {
		t.Errorf("exit code %d: %v: %s%s", code, err, text, errs)
	}
	code, text, errs = glmbatch(append(args, "--guided", "--format", "json")...)
	var guided jobResult
	if err := json.Unmarshal([]byte(text), &guided); err != nil || code != exitOK || guided.Output != 24 ||
		guided.Free <= 0 {
		t.Errorf("--guided: exit code %d: %v: %s%s", code, err, text, errs)
	}
	code, text, errs = glmbatch(append(args, "--job", "80/9", "--tail", "--speculate", "2", "--turns", "1",
		"--format", "json")...)
	var drafts jobResult
	if err := json.Unmarshal([]byte(text), &drafts); err != nil || code != exitOK || drafts.Verified == 0 ||
		drafts.Without <= 0 || drafts.Slow <= 0 || drafts.Tail <= 0 || drafts.Output < 6 || drafts.Output == 6*9 {
		t.Errorf("--tail: exit code %d: %v: %s%s", code, err, text, errs)
	}
	code, text, errs = glmbatch(args...)
	if code != exitOK || !strings.Contains(text, "1 of 2 ranks are here") {
		t.Errorf("exit code %d: %s%s", code, text, errs)
	}
	narrow(t, text)
	for flag, want := range map[string]string{"--job=8192": "INPUT/OUTPUT", "--job=0/5": "INPUT/OUTPUT",
		"--prefix=81": "--prefix 81", "--requests=0": "--requests 0", "--prefill=5": "excludes",
		"--speculate=x": "--speculate", "--turns=0": "--turns 0", "--tail": "too short"} {
		if code, _, errs := glmbatch(append(args, flag)...); code != exitInput || !strings.Contains(errs, want) {
			t.Errorf("%s: exit code %d, %s", flag, code, errs)
		}
	}
}

// What only a job has is refused without one, and drafts that no layer makes with one.
func TestBenchWithoutJob(t *testing.T) {
	for args, want := range map[string]string{
		"--speculate 3": "--speculate is for a job", "--turns 2": "--turns is for a job",
		"--tail --link-rate 5": "--link-rate is for a job", "--prefix-sharing on": "--prefix-sharing is for a job",
		"--layout throughput --drafts 3":                  "with --layout latency it makes 3",
		"--layout throughput --job 9/9 --speculate 3":     "--speculate 3: the prediction layer makes no drafts",
		"--layout throughput --job 9/9 --speculate auto":  "--speculate ngram:3 needs no such layer",
		"--layout throughput --job 9/9 --speculate ngram": `--speculate "ngram"`,
	} {
		code, _, errs := glmbatch(append([]string{"bench", "--config", "tiny", "--device", "cpu"},
			strings.Fields(args)...)...)
		if code != exitInput || !strings.Contains(errs, want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: exit code %d, %q", args, code, errs)
		}
	}
}

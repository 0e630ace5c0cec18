package main

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"glmbatch/bench"
	"glmbatch/datasets"
	"glmbatch/replay/timeline"
)

// benched runs bench on the CPU and returns its JSON.
func benched(t *testing.T, args ...string) benchOutput {
	t.Helper()
	args = append([]string{"bench", "--device", "cpu", "--machine", "h200", "--format", "json"}, args...)
	code, out, errs := glmbatch(args...)
	if code != 0 {
		t.Fatalf("%v: exit code %d: %s", args, code, errs)
	}
	var o benchOutput
	if err := json.Unmarshal([]byte(out), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

type benchOutput struct {
	Schema  string `json:"schema"`
	KVSlots int64  `json:"kv_slots"`
	Weights int64  `json:"weight_bytes"`
	Results []struct {
		bench.Result
		Report struct {
			Steps int              `json:"steps"`
			Ranks int              `json:"ranks"`
			Wall  int64            `json:"wall_ns"`
			Sums  map[string]int64 `json:"ledger"`
			Kinds []struct{ Kind string }
		}
	} `json:"results"`
}

func TestBench(t *testing.T) {
	file := filepath.Join(t.TempDir(), "spans.parquet")
	o := benched(t, "--config", "tiny", "--tp", "8", "--ranks", "2", "--batch", "1,8", "--context", "40,300", "--steps",
		"3", "--warmup", "1",
		"--prefill", "100", "--chunk", "48", "--timeline", file)
	if o.Schema != "glmbatch.bench/1" || len(o.Results) != 5 || o.KVSlots != 8*320 {
		t.Fatalf("%s, %d results, %d slots", o.Schema, len(o.Results), o.KVSlots)
	}
	steps := 0
	for i, r := range o.Results {
		l := r.Report
		var sum int64
		for _, ns := range l.Sums {
			sum += ns
		}
		if sum != l.Wall || l.Wall <= 0 || l.Ranks != 2 {
			t.Errorf("%s %d %d: the ledger adds up to %d of %d, %d ranks", r.Kind, r.Batch, r.Context, sum,
				l.Wall, l.Ranks)
		}
		each := 1
		if r.Kind == "prefill" {
			each = 3 // chunks
		}
		if l.Steps != 3*each || r.Step.N != 3 || r.Recorded.N != 3 || len(l.Kinds) != 1 || l.Kinds[0].Kind != r.Kind {
			t.Errorf("%s %d %d: %d steps in the ledger, %d timed, %d recorded, kinds %v", r.Kind, r.Batch, r.Context,
				l.Steps, r.Step.N, r.Recorded.N, l.Kinds)
		}
		if want := []float64{1, 8, 1, 8, 1}[i]; r.Batch != int(want) || r.Floor <= 0 || r.Bytes <= 0 || r.FLOPs <= 0 ||
			r.Calls == 0 || !(r.TokensPerSecond > 0) {
			t.Errorf("result %d: %+v", i, r.Result)
		}
		if r.Kind == "decode" && r.Batch == 8 &&
			(r.Experts < 9 || r.Experts > 16 || math.Abs(r.ExpertsUniform-14.4) > .01) {
			t.Errorf("8 tokens went to %.2f experts of a layer, %.2f if routed evenly", r.Experts, r.ExpertsUniform)
		}
		steps += l.Steps
	}
	if a, b := o.Results[0].Bytes, o.Results[2].Bytes; a >= b {
		t.Errorf("a longer context has no more bytes: %d, %d", a, b)
	}
	rows, seen, phases := 0, map[int64]bool{}, map[string]int{}
	err := datasets.Read(file, func(part []datasets.Span) error {
		for i := range part {
			rows, seen[part[i].Step] = rows+1, true
			if part[i].Lane == timeline.LaneHost {
				phases[part[i].Kernel]++
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"schedule", "upload", "launch", "wait"} {
		if phases[p] != steps {
			t.Errorf("%d of %d steps have the host's phase %s", phases[p], steps, p)
		}
	}
	if len(seen) != steps || rows < steps*2*100 {
		t.Errorf("the timeline has %d rows of %d steps, want %d steps", rows, len(seen), steps)
	}
}

// A pool that is given is not grown: what does not fit is left out and said.
func TestBenchSkips(t *testing.T) {
	o := benched(t, "--config", "tiny", "--tp", "1", "--batch", "1,4", "--context", "256", "--steps", "1", "--warmup",
		"0", "--kv-slots", "640", "--kv-cache", "fp8")
	if o.KVSlots != 640 || len(o.Results) != 2 || o.Results[0].Skipped != "" ||
		!strings.Contains(o.Results[1].Skipped, "needs 1,024 cache slots, --kv-slots has 640") {
		t.Errorf("%d slots, %+v", o.KVSlots, o.Results)
	}
}

// The copy of the pool costs what the pool has, not what the batch uses.
func TestBenchWhatIf(t *testing.T) {
	o := benched(t, "--config", "tiny", "--tp", "2", "--ranks", "2", "--batch", "1", "--context", "100", "--steps", "1",
		"--kv-cache", "fp8", "--kv-slots", "4096", "--what-if", "kv=cast-pool")
	if len(o.Results) != 2 || o.Results[0].WhatIf != "" || o.Results[1].WhatIf != "kv=cast-pool" {
		t.Fatalf("%+v", o.Results)
	}
	in, cast := o.Results[0], o.Results[1]
	const layers, slots, entries = 6, 4096, (64 + 4 + 2*16) + 2*(64+16)
	more := cast.Bytes - in.Bytes
	if least := int64(layers * slots * entries); more < least || more > least*101/100 || cast.Calls != in.Calls+layers {
		t.Errorf("%d more calls move %d more bytes, the pool's copies %d", cast.Calls-in.Calls, more, least)
	}
	if _, ok := cast.Report.Sums["kv.cast"]; !ok {
		t.Errorf("the ledger has no kv.cast: %v", cast.Report.Sums)
	}
}

// A captured step of random weights is made again, and comes out the same.
func TestBenchCapture(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "steps")
	benched(t, "--config", "tiny", "--seed", "5", "--tp", "8", "--ranks", "2", "--batch", "1,3", "--context", "90",
		"--steps", "1", "--prefill", "80", "--capture", dir)
	files, err := filepath.Glob(filepath.Join(dir, "step-*.arrow"))
	if err != nil || len(files) != 2 {
		t.Fatalf("captures %v, %v", files, err)
	}
	code, out, errs := glmbatch("replay", dir, "--device", "cpu", "--repeat", "2", "--skip", "alone",
		"--skip", "marginal")
	if code != 0 || strings.Count(out, "equal the recorded ones bit for bit") != 2 {
		t.Errorf("exit code %d: %s%s", code, errs, out)
	}
}

// The share of a rank is the same work however many ranks run.
func TestBenchShards(t *testing.T) {
	args := []string{"--config", "tiny", "--tp", "8", "--batch", "2", "--context", "100", "--steps", "1",
		"--warmup", "0"}
	one, all := benched(t, append(args, "--ranks", "1")...), benched(t, append(args, "--ranks", "8")...)
	if one.Weights != all.Weights || all.Weights == 0 {
		t.Errorf("a rank has %d bytes of weights alone, %d among eight", one.Weights, all.Weights)
	}
	whole := benched(t, "--config", "tiny", "--tp", "1", "--batch", "2", "--context", "100", "--steps", "1",
		"--warmup", "0")
	if f := float64(whole.Weights) / float64(one.Weights); f < 2 || f >= 8 {
		t.Errorf("the whole model has %.1f times the weights of a rank of eight", f)
	}
}

func TestBenchText(t *testing.T) {
	code, out, errs := glmbatch("bench", "--device", "cpu", "--machine", "h200", "--model", writeTiny(t), "--tp", "2",
		"--batch", "1,3", "--context", "70", "--steps", "2",
		"--by", "kernel", "--kv-slots", "192", "--prefill", "50")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	for _, want := range []string{"1 of 2 ranks", "its weights", "collectives are local", "needs 384 cache slots",
		"floor ms", "batch 1 at context 70", "mla_attend_bf16",
		"prefill of 50 tokens", "even routing", "matrix rate of h200, 989 TFLOP/s"} {
		if !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	narrow(t, out)
}

// writeTiny writes a random tiny checkpoint.
func writeTiny(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tiny")
	if code, _, errs := glmbatch("model", "synth", "--config", "tiny", "--out", dir); code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	return dir
}

func TestBenchSaysAllFaults(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want []string
	}{
		{nil, []string{"give --config for random weights, or --model"}},
		{[]string{"--config", "tiny", "--tp", "2", "--ranks", "3", "--batch", "-1", "--steps", "0", "--format", "xml",
			"--timeline", "a.csv", "--by", "colour"},
			[]string{"--ranks 3", "--batch -1", "--steps 0", `--format "xml"`, "--timeline a.csv", `--by "colour"`}},
		{[]string{"--config", "tiny", "--model", "x", "--synthetic", "--layers", "3"},
			[]string{"exclude each other", "--layers and --set"}},
		{[]string{"--config", "tiny", "--context", "4096"}, []string{"the model has 1 to 2048 positions"}},
		{[]string{"--config", "tiny", "--what-if", "kv=cast-pool"}, []string{"add --kv-cache fp8"}},
		{[]string{"--config", "tiny", "--kv-slots", "64", "--context", "65"},
			[]string{"batch 1 at context 65: it needs 128 cache slots"}},
		{[]string{"--config", "tiny", "--batch", "0"}, []string{"nothing to measure"}},
		{[]string{"--config", "tiny", "--tp", "3"}, []string{"--tp 3: it must be 1, 2, 4 or 8"}},
		{[]string{"--config", "tiny", "--machine", "abacus"}, []string{`no machine "abacus"`}},
		{[]string{"--config", "no-such"}, []string{`"no-such" is neither`}},
		{[]string{"--model", "no-such"}, []string{"no-such"}},
		{[]string{"--config", "tiny", "--capture", file, "--timeline", filepath.Join(file, "x.arrow")},
			[]string{"--capture: no file can be written in " + file, "--timeline: no file can be written in " + file}},
	} {
		code, _, errs := glmbatch(append([]string{"bench", "--device", "cpu"}, c.args...)...)
		if code != exitInput {
			t.Errorf("%v: exit code %d, want %d", c.args, code, exitInput)
		}
		for _, w := range c.want {
			if !strings.Contains(errs, w) {
				t.Errorf("%v: %q does not say %q", c.args, errs, w)
			}
		}
	}
}

func TestBenchInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code := run(ctx, []string{"bench", "--config", "tiny", "--tp", "1", "--device", "cpu", "--machine", "h200",
		"--context", "64"}, io.Discard, io.Discard); code != exitInterrupted {
		t.Errorf("exit code %d", code)
	}
}

// TestBenchPlan: the launches of a GPU that need not be here, on its last rank.
func TestBenchPlan(t *testing.T) {
	code, out, errs := glmbatch("bench", "--config", "tiny", "--tp", "2", "--ranks", "2", "--batch", "1,4", "--context",
		"100", "--prefill", "90", "--plan", "h200")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	for _, want := range []string{"batch 4 at context 100, step 0 on h200 (sm90, 132 multiprocessors)",
		"prefill of 90 tokens", "reduce_norm", "[moe_up", "behind them:\n  gather_rows"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if code, _, errs := glmbatch("bench", "--config", "tiny", "--plan", "h9000"); code != exitInput ||
		!strings.Contains(errs, "rtx-pro-6000") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

package replay_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"glmbatch/datasets"
	"glmbatch/golden"
	"glmbatch/kernels"
	"glmbatch/replay"
	"glmbatch/replay/attribute"
	"glmbatch/replay/report"
	"glmbatch/replay/timeline"
)

// repeats is a timeline of a step of two calls, run so many times.
func repeats(n int, gemm int64) []datasets.Span {
	var rows []datasets.Span
	calls := []kernels.Call{
		{Kernel: "gemm_bf16", Layer: 0, Dims: kernels.Dims{M: 2, N: 256, K: 256}},
		{Kernel: "mla_attend_fp8", Layer: 0, Dims: kernels.Dims{M: 2, K: 64, Rope: 16, Heads: 8, Slots: 200, Ctx: 200}},
	}
	for i := range int64(n) {
		at := i * 1_000_000
		spans := [][]kernels.Span{{{Start: at + 10_000, End: at + 10_000 + gemm + i},
			{Start: at + 11_000 + gemm, End: at + 60_000 + gemm}}}
		end := at + 80_000 + gemm
		times := kernels.Times{Wall: kernels.Interval{Start: at, End: end},
			Upload: kernels.Interval{Start: at, End: at + 9_000},
			Sample: kernels.Interval{Start: at + 61_000 + gemm, End: end}}
		rows = timeline.Rows(rows, &kernels.Trace{Step: i, Kind: kernels.Decode, Times: times, Calls: calls,
			Spans: spans}, 0)
	}
	return rows
}

func figures(name string, rows []datasets.Span, opt report.Options) replay.Figures {
	var names datasets.Names
	a := attribute.New(&names, attribute.Options{By: opt.By})
	events := timeline.Events(rows, &names)
	for i := range int64(len(events)) {
		a.Step(i, events[i])
	}
	r := report.New(name, a, opt)
	r.Rows = int64(len(rows))
	return replay.Figures{Name: name, Rows: rows, Report: r, Wall: r.Sections[0].WallOf}
}

func exampleResult(t *testing.T) *replay.Result {
	t.Helper()
	r := &replay.Result{
		Capture: &replay.Capture{File: "captures/step-00000042.arrow",
			Header: replay.Header{Step: 42, Kind: "decode", Ranks: 1, Model: "demo",
				Device: kernels.Info{Kind: "cpu"}, KV: replay.KVExact,
				Times: kernels.Times{Wall: kernels.Interval{End: 140_000}}}},
		Device: kernels.Info{Kind: "cpu", Name: "a CPU", Detail: "avx2"},
		Verdict: replay.Verdict{Mode: replay.VerifyOutputs, Equal: true, Compared: 5,
			Text: "outputs equal the recorded ones bit for bit: 2 tokens, 5 outputs of calls compared"},
		Figures: figures("as captured", repeats(5, 40_000), report.Options{}),
	}
	r.Coverage = &replay.Coverage{Warm: 0.75, Cold: 0.9}
	recorded := figures("recorded", repeats(1, 80_000), report.Options{})
	r.Report.Again = report.AgainOf(&recorded.Report.Sections[0], &r.Report.Sections[0])
	r.Report.Again.Cause, r.Report.Again.Text = replay.CauseStall, "recorded 0.160 ms, again 0.120 ms: a stall"
	r.Report.Isolated = []report.Isolation{{Kind: "decode", Wall: r.Wall.Median, Rows: []report.IsolatedRow{
		{Label: "attn", Calls: 1, InPlace: 49_000, Warm: 45_000, Cold: 50_000, Marginal: 48_000, MarginalLo: 47_000,
			MarginalHi: 49_500, Bound: 4_000},
		{Label: "gemm.bf16", Calls: 1, InPlace: 40_002, Warm: 45_000, Cold: 58_000, Marginal: 39_000,
			MarginalLo: -1_000, MarginalHi: 41_000},
	}}}
	ch := replay.Change{Figures: figures("scale=gemm.bf16:0.5", repeats(5, 20_000), report.Options{}),
		Note: "nothing was run", SameTokens: 2, Tokens: 2}
	ch.Coverage = &replay.Coverage{Warm: 0.9, Cold: 1.1}
	var err error
	a, b := figures("as captured", r.Rows, report.DiffOptions("")), figures(ch.Name, ch.Rows, report.DiffOptions(""))
	if ch.Diff, err = report.Compare(a.Report, b.Report); err != nil {
		t.Fatal(err)
	}
	r.WhatIf = []replay.Change{ch}
	return r
}

func TestResultFormats(t *testing.T) {
	for _, f := range report.Formats {
		var b bytes.Buffer
		if err := exampleResult(t).Write(&b, f.Name, report.Style{}); err != nil {
			t.Fatal(err)
		}
		golden.Check(t, "result."+f.Name, b.String())
		if f.Name != "text" {
			continue
		}
		for line := range strings.Lines(b.String()) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > report.DefaultWidth {
				t.Errorf("%d columns: %s", n, line)
			}
		}
	}
	if err := exampleResult(t).Write(&bytes.Buffer{}, "xml", report.Style{}); err == nil {
		t.Error("a format that is none was written")
	}
}

// The fault is named first, also where the step is captured over another cache.
func TestWhatIf(t *testing.T) {
	l := newLoader(t)
	o := small
	o.KVCache = kernels.BF16
	file := captured(t, l, 8, o, "decode:first=1", replay.CaptureOptions{})[0]
	x, err := replay.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	opt := replay.Options{Repeat: 3, Warmup: 1, Hash: l.hash(), By: attribute.ByLayer, PoolTokens: 4096}
	for _, s := range []string{"kv=cast-pool", "kv=cast-active", "kv=in-place", "kv-cache=f32", "drop=moe.route",
		"scale=attn:2", "tp=2"} {
		w, err := replay.ParseWhatIf(s)
		if err != nil {
			t.Fatal(err)
		}
		opt.WhatIf = append(opt.WhatIf, w)
	}
	r, err := replay.Run(x, l.load, opt)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.WhatIf) != len(opt.WhatIf) || r.Coverage == nil || len(r.Report.Isolated) != 1 {
		t.Fatalf("%d changes, coverage %v, %d tables", len(r.WhatIf), r.Coverage, len(r.Report.Isolated))
	}
	for _, row := range r.Report.Isolated[0].Rows {
		if row.Calls < 1 || row.InPlace <= 0 || row.Warm <= 0 || row.MarginalLo > row.Marginal ||
			row.Marginal > row.MarginalHi {
			t.Errorf("%+v", row)
		}
	}
	first := func(i int) string { // of what the device did: how long it idled is the machine's load
		for _, f := range r.WhatIf[i].Report.Findings {
			if !strings.Contains(f.Text, "the device idles") {
				return f.Text
			}
		}
		return ""
	}
	if s := first(0); !strings.HasPrefix(s, "kv.cast is ") ||
		!strings.Contains(s, "the whole pool, 4,096 slots, of which the batch uses ") {
		t.Errorf("with the fault the first line is %q", s)
	}
	if s := first(1); !strings.HasPrefix(s, "kv.cast is ") || !strings.Contains(s, "the batch's pages, ") {
		t.Errorf("with copies of the batch's pages the first line is %q", s)
	}
	for i := range r.WhatIf {
		ch := &r.WhatIf[i]
		if i >= 2 && strings.HasPrefix(first(i), "kv.cast") {
			t.Errorf("%s: %s", ch.Name, first(i))
		}
		if ch.Name == "kv=in-place" && ch.SameTokens != ch.Tokens {
			t.Errorf("%s: %d of %d tokens", ch.Name, ch.SameTokens, ch.Tokens)
		}
		for _, s := range ch.Report.Sections {
			sum := int64(0)
			for _, a := range s.Ledger {
				sum += a.NS
			}
			if sum != s.Wall {
				t.Errorf("%s: the ledger adds up to %d of %d ns", ch.Name, sum, s.Wall)
			}
		}
		if ch.Diff == nil || len(ch.Diff.Kinds) != 1 {
			t.Errorf("%s: no difference", ch.Name)
		}
	}
	opt.WhatIf = nil
	asked, stopAt := 0, -1
	opt.Stop = func() error {
		if asked++; asked == stopAt {
			return context.Canceled
		}
		return nil
	}
	if _, err := replay.Run(x, l.load, opt); err != nil {
		t.Fatal(err)
	}
	for all, at := asked, 1; at <= all; at += max(1, all/5) {
		asked, stopAt = 0, at
		if r, err := replay.Run(x, l.load, opt); !errors.Is(err, context.Canceled) || r != nil || asked != at {
			t.Errorf("stopped the %d. time of %d: %v, %v, asked %d times", at, all, r, err, asked)
		}
	}
	opt.Stop = nil
	opt.WhatIf = []replay.WhatIf{{Name: "tp", Value: "3", Ranks: 3}}
	if _, err := replay.Run(x, l.load, opt); err == nil || !strings.Contains(err.Error(), "what-if tp=3") {
		t.Errorf("three ranks: %v", err)
	}
	opt.WhatIf, opt.PoolTokens = nil, 64
	if _, err := replay.Run(x, l.load, opt); err == nil || !strings.Contains(err.Error(), "do not fit 1 pages") {
		t.Errorf("a pool of a page: %v", err)
	}
	if err := (&replay.Options{Repeat: -1, Verify: "x", By: "y", Allow: []string{"z"},
		PoolTokens: -1}).Validate(); err == nil || strings.Count(fmt.Sprint(err), "\n") != 4 {
		t.Errorf("faults: %v", err)
	}
}

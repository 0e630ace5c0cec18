package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"glmbatch/datasets"
	"glmbatch/datasets/datasetstest"
	"glmbatch/replay"
)

// interrupted is a context that is cancelled after some looks at it.
type interrupted struct {
	context.Context
	asks atomic.Int64
}

func (i *interrupted) Err() error {
	if i.asks.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// TestReplay captures steps of the demo and runs them again.
func TestReplay(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a model")
	}
	out := t.TempDir()
	code, _, errs := glmbatch("run", "--demo", "--limit", "12", "--tp", "2", "--kv-tokens", "4096", "--out", out,
		"--capture", "decode:first=1,first=1", "--capture-calls", "data")
	if code != 0 || !strings.Contains(errs, "2 captures, ") {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	files, err := filepath.Glob(filepath.Join(out, "captures", "step-*.arrow"))
	if err != nil || len(files) != 2 {
		t.Fatalf("captures %v, %v", files, err)
	}
	quick := []string{"replay", "--repeat", "2", "--warmup", "1", "--skip", "alone,marginal"}

	code, text, errs := glmbatch(append(quick, out, "--verify", "calls")...)
	if code != 0 || strings.Count(text, "outputs equal the recorded ones bit for bit") != 2 ||
		!strings.Contains(text, files[1]+"\n") {
		t.Errorf("exit code %d: %s%s", code, text, errs)
	}
	code, text, errs = glmbatch(append(quick, out, "--format", "json")...)
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for _, line := range lines {
		if !json.Valid([]byte(line)) {
			t.Errorf("not JSON: %.100s", line)
		}
	}
	if code != 0 || len(lines) != 2 {
		t.Errorf("exit code %d, %d lines: %s", code, len(lines), errs)
	}
	page := filepath.Join(out, "page.html")
	code, text, errs = glmbatch("replay", "--repeat", "3", files[1], "--format", "json", "--html", page, "--what-if",
		"kv=cast-pool", "--evict", "1MiB", "--machine", "h200")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	var doc struct {
		Schema   string
		Verified struct{ Equal bool }
		Report   struct {
			Wall   int64            `json:"wall_ns"`
			Ledger map[string]int64 `json:"ledger"`
		}
		WhatIf []struct {
			Name   string
			Report struct{ Findings []struct{ Code, Text string } }
		} `json:"what_if"`
	}
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	sum := int64(0)
	for _, ns := range doc.Report.Ledger {
		sum += ns
	}
	if doc.Schema != "glmbatch.replay/1" || !doc.Verified.Equal || sum != doc.Report.Wall || len(doc.WhatIf) != 1 {
		t.Fatalf("%+v", doc)
	}
	var found []string
	for _, f := range doc.WhatIf[0].Report.Findings {
		if f.Code != "idle" { // it may come first where other programs have the cores
			found = append(found, f.Code)
		}
	}
	if len(found) == 0 || found[0] != "kv.cast" {
		t.Errorf("findings with a cast: %+v", doc.WhatIf)
	}
	if html, err := os.ReadFile(page); err != nil || !bytes.Contains(html, []byte(`"isolated":[{`)) {
		t.Errorf("the page has no calls run alone: %v", err)
	}

	if html, err := os.ReadFile(page); err != nil || !bytes.Contains(html, []byte(`"title":"What if: kv=cast-pool`)) ||
		!bytes.Contains(html, []byte(`"title":"As recorded, and run again`)) {
		t.Errorf("the page lacks the change, or the step as recorded: %v", err)
	}
	// What was captured is a timeline of steps as they were.
	code, text, errs = glmbatch("report", files[1], "--format", "json")
	var was struct {
		Source string
		Steps  int
		Wall   int64 `json:"wall_ns"`
		Ranks  int64
	}
	if err := json.Unmarshal([]byte(text), &was); err != nil || code != exitOK || was.Source != files[1] ||
		was.Steps != 1 {
		t.Errorf("report of a capture: exit code %d, %+v, %v: %s", code, was, err, errs)
	}
	steps, err := datasetstest.ReadAll[datasets.Step](filepath.Join(out, "steps"))
	if err != nil || !slices.ContainsFunc(steps, func(s datasets.Step) bool {
		return s.WallNS == was.Wall/max(1, was.Ranks)
	}) {
		t.Errorf("no step took the %d ns of the capture on %d ranks: %v", was.Wall, was.Ranks, err)
	}
	captures := filepath.Join(out, "captures")
	if text := ends(t, exitOK, "report", captures); !strings.Contains(text, "decode: 1 step") {
		t.Errorf("report of a folder of captures: %s", text)
	}
	ends(t, exitOK, "diff", files[1], captures, "--kind", "decode")
	ends(t, exitOK, "export", "chrome", captures, "--out", filepath.Join(out, "trace.json"))
	code, text, _ = glmbatch(append(quick, out, "--format", "csv", "--what-if", "scale=attn:2")...)
	if rows, err := csv.NewReader(strings.NewReader(text)).ReadAll(); err != nil || code != exitOK ||
		rows[0][0] != "table" || rows[1][1] != filepath.Base(files[0])+": as captured" {
		t.Errorf("as CSV: exit code %d, %v, %.80s", code, err, text)
	}

	changed := filepath.Join(t.TempDir(), "changed.arrow")
	rows, err := datasets.ReadCapture(files[1])
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		if rows[i].Part == datasets.CaptureInput && rows[i].Name == "tokens" {
			rows[i].Data[0] ^= 1
		}
	}
	if err := datasets.WriteCapture(changed, rows); err != nil {
		t.Fatal(err)
	}
	damaged := filepath.Join(t.TempDir(), "damaged.arrow")
	raw, err := os.ReadFile(files[1])
	if err != nil {
		t.Fatal(err)
	}
	raw[len(raw)/2] ^= 1
	if err := os.WriteFile(damaged, raw, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{changed, "--verify", "calls"}, exitCheck,
			"changed.arrow: the replay's outputs differ from the recorded ones: y of call 0, embed_bf16: "},
		{[]string{damaged}, exitInput, "damaged.arrow"},
		{[]string{filepath.Join(out, "none")}, exitInput, "no such file"},
		{[]string{filepath.Join(out, "outputs")}, exitInput, "no captures"},
		{nil, exitInput, "no captures"},
		{[]string{files[1], "--what-if", "kv=cast"}, exitInput, "cast-pool"},
		{[]string{files[1], "--allow", "all"}, exitInput, "there are model, device, version"},
		{[]string{files[1], "--repeat", "0"}, exitInput, "at least one"},
		{[]string{files[1], "--repeat", "-1"}, exitInput, "repeat -1: it must be from 0 to 100000"},
		{[]string{files[1], "--warmup", "-2"}, exitInput, "--warmup -2: it must not be negative"},
		{[]string{files[1], "--warmup", "0"}, exitOK, ""},
		{[]string{files[1], "--evict", "-1"}, exitInput, "--evict: "},
		{[]string{files[1], "--collective", "two"}, exitInput, "one-shot"},
		{[]string{files[1], "--html", filepath.Join(out, "none", "page.html")}, exitInput,
			"--html: no file can be written in "},
		{[]string{files[1], "--format", "xml"}, exitInput, "xml"},
		{[]string{files[1], "--model", out}, exitInput, out},
		{[]string{files[0], files[1], "--html", page}, exitInput, "one capture"},
		{[]string{files[1], "--pool-tokens", "64"}, exitInput, "pages"},
		{[]string{files[1], "--what-if", "drop=attn.indexer", "--what-if", "tp=3"}, exitInput, "what-if tp=3"},
	} {
		code, _, errs := glmbatch(append(quick, c.args...)...)
		if code != c.code || !strings.Contains(errs, c.says) {
			t.Errorf("%v: exit code %d, %q; want %d, %q", c.args, code, errs, c.code, c.says)
		}
	}
	for _, asks := range []int64{0, 2, 9} {
		ctx := &interrupted{Context: t.Context()}
		ctx.asks.Store(asks)
		var errs strings.Builder
		if code := run(ctx, []string{"replay", files[1], "--repeat", "5"}, io.Discard, &errs); code !=
			exitInterrupted || !strings.Contains(errs.String(), "glmbatch: ") ||
			!strings.Contains(errs.String(), "interrupted") {
			t.Errorf("interrupted after %d looks: exit code %d, %s", asks, code, &errs)
		}
	}
	for _, s := range []string{"often=3", "decode:first"} {
		if code, _, errs := glmbatch("run", "--demo", "--out", filepath.Join(out, "x"), "--capture", s); code !=
			exitInput || !strings.Contains(errs, "--capture: ") {
			t.Errorf("--capture %s: exit code %d, %q", s, code, errs)
		}
	}
}

// TestQuarantinedStep: of a row with which two steps end badly, or crash the program,
// there is the second, which replay runs again; it goes when the row is run again.
func TestQuarantinedStep(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a model")
	}
	for _, kind := range []string{"error", "panic"} {
		out := filepath.Join(t.TempDir(), "out")
		job := []string{"run", "--demo", "--limit", "3", "--tp", "1", "--device", "cpu", "--kv-tokens", "4096",
			"--max-tokens", "6", "--timeline", "off", "--out", out}
		capture := filepath.Join(out, "captures", "row-00000000.arrow")
		for i := range 2 {
			if _, err := os.Stat(capture); err == nil {
				t.Errorf("%s: a capture after %d attempts", kind, i)
			}
			c := child(t, append(job, "--inject-fault", kind+":0:3")...)
			text, err := c.CombinedOutput()
			if want := map[string]int{"error": exitDevice, "panic": 2}[kind]; err == nil ||
				c.ProcessState.ExitCode() != want {
				t.Fatalf("%s: %v: %s", kind, err, text)
			}
		}
		code, _, errs := glmbatch(job...)
		if code != exitRowErrors || !strings.Contains(errs, "1 rows have errors") {
			t.Errorf("%s: exit code %d: %s", kind, code, errs)
		}
		if found, _ := filepath.Glob(filepath.Join(out, "captures", "*")); !slices.Equal(found, []string{capture}) {
			t.Fatalf("%s: captures %v", kind, found)
		}
		code, text, errs := glmbatch("replay", out, "--repeat", "2", "--warmup", "1", "--evict", "none")
		if code != 0 || !strings.Contains(strings.Join(strings.Fields(text), " "),
			"of input row 0, which did not end in its job") {
			t.Errorf("%s: exit code %d: %s%s", kind, code, text, errs)
		}
		code, text, errs = glmbatch("replay", capture, "--repeat", "2", "--warmup", "1", "--skip", "alone",
			"--format", "json")
		var doc struct {
			Capture  struct{ Rows []int64 }
			Verified replay.Verdict
		}
		if err := json.Unmarshal([]byte(text), &doc); err != nil || code != 0 ||
			!slices.Equal(doc.Capture.Rows, []int64{0}) || doc.Verified.Equal || doc.Verified.Compared > 0 {
			t.Errorf("%s: exit code %d: %v: %+v%s", kind, code, err, doc, errs)
		}
		if code, _, errs := glmbatch("report", filepath.Join(out, "captures")); code != exitInput ||
			!strings.Contains(errs, "has no spans") {
			t.Errorf("%s: report: exit code %d: %s", kind, code, errs)
		}
		if code, _, errs := glmbatch(append(job, "--retry-errors")...); code != 0 {
			t.Errorf("%s: exit code %d: %s", kind, code, errs)
		}
		if _, err := os.Stat(capture); err == nil {
			t.Errorf("%s: the capture of a row that has no error is there still", kind)
		}
	}
}

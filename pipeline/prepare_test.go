package pipeline

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"glmbatch/datasets"
	"glmbatch/datasets/datasetstest"
)

// inputOf writes rows to a file and opens it.
func inputOf[T any](t *testing.T, rows []T) *datasets.Input {
	t.Helper()
	path := filepath.Join(t.TempDir(), "in.parquet")
	w, err := datasets.Create[T](path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	in, err := datasets.Open([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	return in
}

type trickyRow struct {
	Messages *string `parquet:"messages"`
	System   *string `parquet:"system"`
	Params   *string `parquet:"sampling_params"`
}

// TestRowErrors: every bad row has its code, and the good ones between them run.
func TestRowErrors(t *testing.T) {
	p := func(s string) *string { return &s }
	good := p(`[{"role":"user","content":"hi"}]`)
	cases := []struct {
		row  trickyRow
		code string
	}{
		{trickyRow{Messages: good}, ""},
		{trickyRow{}, NullPrompt},
		{trickyRow{Messages: p("null")}, NullPrompt},
		{trickyRow{Messages: p("")}, BadMessages},
		{trickyRow{Messages: p("hello")}, BadMessages},
		{trickyRow{Messages: p(`{"role":"user"}`)}, BadMessages},
		{trickyRow{Messages: p(`[1,2]`)}, TemplateError},
		{trickyRow{Messages: p(strings.Repeat("[", 100_000))}, BadMessages},
		{trickyRow{Messages: p("[\"\xff\"]")}, BadUTF8},
		{trickyRow{Messages: good, System: p("\xff")}, BadUTF8},
		{trickyRow{Messages: good, Params: p(`{"temperature":-1}`)}, BadParams},
		{trickyRow{Messages: good, Params: p(`{"max_tokens":2}`)}, ""},
		{trickyRow{Messages: p(`[{"role":"user","content":"` + strings.Repeat("long ", 2000) + `"}]`)}, TooLong},
		{trickyRow{Messages: good, System: p("Be brief.")}, ""},
	}
	rows := make([]trickyRow, len(cases))
	for i, c := range cases {
		rows[i] = c.row
	}
	in := inputOf(t, rows)
	dir := t.TempDir()
	j := newJob(t, in, Options{Context: 2048}, &stub{vocab: 2000, length: 4}, dir)
	if err := j.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	got := readOut(t, dir)
	if len(got) != len(cases) {
		t.Fatalf("%d rows, want %d", len(got), len(cases))
	}
	bad := 0
	for i, c := range cases {
		if got[i].Code != c.code || (c.code != "") != (got[i].Reason == "error") {
			t.Errorf("row %d (%.40q): code %q, finish_reason %q, want code %q", i, *cmpOr(c.row.Messages, p("")),
				got[i].Code, got[i].Reason, c.code)
		}
		if c.code != "" {
			bad++
		}
	}
	if n := j.Counts.Errors.Load(); n != int64(bad) {
		t.Errorf("%d errors counted, want %d", n, bad)
	}
}

func cmpOr[T any](a, b *T) *T {
	if a != nil {
		return a
	}
	return b
}

func TestTruncate(t *testing.T) {
	long := strings.Repeat("long ", 2000)
	in := inputOf(t, []benchRow{{Prompt: long}, {Prompt: "short"}})
	dir := t.TempDir()
	o := Options{Context: 256, OnOverlong: OverlongHead, Params: Params{N: 1}}
	o.Params.MaxTokens = 16
	if err := newJob(t, in, o, &stub{vocab: 2000, length: 4}, dir).Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	type cut struct {
		Prompt int32 `parquet:"prompt_tokens"`
		Cut    int32 `parquet:"truncated_tokens"`
	}
	rows, err := datasetstest.ReadAll[cut](filepath.Join(dir, datasets.OutputsDir))
	if err != nil {
		t.Fatal(err)
	}
	if rows[0].Prompt != 240 || rows[0].Cut == 0 || rows[1].Cut != 0 {
		t.Errorf("%+v", rows)
	}
}

// TestEmptyInput writes a file without rows that has the whole schema.
func TestEmptyInput(t *testing.T) {
	in := inputOf[benchRow](t, nil)
	dir := t.TempDir()
	if err := newJob(t, in, Options{}, &stub{vocab: 2000, length: 4}, dir).Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	back, err := datasets.Open([]string{filepath.Join(dir, datasets.OutputsDir, "part-00000.parquet")})
	if err != nil {
		t.Fatal(err)
	}
	want := "id, prompt, score, response, reasoning, finish_reason, stop_reason, prompt_tokens, completion_tokens, " +
		"error_code, error, row_index, sample_index, seed, run_id"
	if back.Rows != 0 || back.ColumnNames() != want {
		t.Errorf("%d rows of %s", back.Rows, back.ColumnNames())
	}
}

// TestStopStrings cuts responses at text that tokens do not respect.
func TestStopStrings(t *testing.T) {
	text := demoText(t)
	in := inputOf(t, []benchRow{{Prompt: "a"}, {Prompt: "b"}, {Prompt: "c"}})
	run := func(stop ...string) []outRow {
		dir := t.TempDir()
		o := Options{TokenIDs: true, Params: Params{N: 3, StopText: stop}}
		e := &stub{vocab: 2000, length: 60}
		if err := newJob(t, in, o, e, dir).Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		if !e.Idle() {
			t.Error("sequences that stopped are still in the engine")
		}
		return readOut(t, dir)
	}
	stopped := 0
	whole, cut := run(), run("a", "t")
	for i := range whole {
		full := text.Tokenizer.Decode(whole[i].Tokens, true)
		want, reason := full, "length"
		if at := strings.IndexAny(full, "at"); at >= 0 {
			want, reason = full[:at], "stop"
			stopped++
		}
		if d := cmp.Diff([]string{strings.TrimPrefix(want, "</think>"), reason},
			[]string{cut[i].Response, cut[i].Reason}); d != "" {
			t.Errorf("row %d: %s", i, d)
		}
	}
	if stopped == 0 {
		t.Error("no response had a stop string: the test tests nothing")
	}
}

func TestColumns(t *testing.T) {
	type odd struct {
		Text string `parquet:"text"`
		N    string `parquet:"n"`
	}
	in := inputOf(t, []odd{{"a", "b"}})
	p, err := NewPlan(in, Options{ParamColumns: []string{NoColumn}})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"prompt from text"}, p.Taken); d != "" {
		t.Error(d)
	}
	for _, o := range []Options{{PromptColumn: "x"}, {SystemColumn: "x"}, {MessagesColumn: "x"}, {Check: "x"},
		{ToolsColumn: "x"}} {
		if _, err := NewPlan(in, o); err == nil ||
			!strings.Contains(err.Error(), `no column "x"; the columns are text, n`) {
			t.Errorf("%+v: error %v", o, err)
		}
	}
	type none struct {
		A int64 `parquet:"a"`
	}
	if _, err := NewPlan(inputOf(t, []none{{1}}), Options{}); err == nil {
		t.Error("no error without a prompt column")
	}
	if _, err := NewPlan(inputOf(t, []none{{1}}), Options{PromptColumn: "a"}); err == nil {
		t.Error("no error with a prompt column of numbers")
	}
}

package pipeline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"glmbatch/datasets"
	"glmbatch/datasets/datasetstest"
	"glmbatch/engine"
)

// scorer is a stub that gives a prompt's tokens one a step, and so ends other samples of
// a row before the prompt is scored. It counts what it was asked for.
type scorer struct {
	stub
	scored       map[int64]int
	asked, added int
}

func (s *scorer) Add(r engine.Request) error {
	s.added++
	if r.Sampling.PromptLogprobs > 0 {
		s.asked++
	}
	return s.stub.Add(r)
}

func (s *scorer) Step() ([]engine.Token, error) {
	var at, rest []*stubSequence
	for _, q := range s.seqs {
		if p := &q.Sampling; p.PromptLogprobs > 0 && (s.scored[q.ID] < len(q.Prompt)-1 || p.PromptOnly) {
			at = append(at, q)
		} else {
			rest = append(rest, q)
		}
	}
	s.seqs = rest
	tokens, err := s.stub.Step()
	for _, q := range at {
		n := s.scored[q.ID] + 1
		if n == len(q.Prompt) {
			tokens = append(tokens, engine.Token{ID: q.ID, Token: -1, Reason: engine.Length})
			continue
		}
		s.scored[q.ID] = n
		t := engine.Token{ID: q.ID, Token: q.Prompt[n], Logprob: -float32(n), Prompt: true}
		for i := range q.Sampling.PromptLogprobs - 1 {
			t.Top = append(t.Top, engine.Logprob{Token: int32(i), Logprob: -1})
		}
		tokens = append(tokens, t)
		s.seqs = append(s.seqs, q)
	}
	return tokens, err
}

// scoredRow is what the test compares of an output row.
type scoredRow struct {
	Row    int64                     `parquet:"row_index"`
	Sample int32                     `parquet:"sample_index"`
	Reason string                    `parquet:"finish_reason"`
	Tokens []int32                   `parquet:"token_ids,list"`
	Given  int32                     `parquet:"prompt_tokens"`
	Chosen []datasets.TokenLogprob   `parquet:"prompt_logprobs,list"`
	Top    [][]datasets.TokenLogprob `parquet:"prompt_top_logprobs,list"`
}

func scoredRows(t *testing.T, dir string) []scoredRow {
	t.Helper()
	rows, err := datasetstest.ReadAll[scoredRow](filepath.Join(dir, datasets.OutputsDir))
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// One sample of a row asks for its prompt's log-probabilities, and all have them, also
// those that end before they are known, and whenever the job was stopped in between.
func TestPromptIsScoredOnce(t *testing.T) {
	var lines []string
	for i, params := range []string{`"n":3,"prompt_logprobs":2`, `"n":3`, `"n":1,"prompt_logprobs":0`,
		`"n":4,"prompt_logprobs":1,"max_tokens":0`, `"n":2,"prompt_logprobs":0,"stop":"x"`} {
		lines = append(lines, fmt.Sprintf(`{"prompt":"a prompt of some more words %d","sampling_params":{%s}}`, i,
			params))
	}
	const asking, requests, samples = 4, 3 + 3 + 1 + 1 + 2, 3 + 3 + 1 + 4 + 2
	path := linesFile(t, lines)
	run := func(dir string, stop int) (*scorer, error) {
		in, err := datasets.OpenLines([]string{path})
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		e := &scorer{stub: stub{vocab: 2000, length: 9}, scored: map[int64]int{}}
		e.onStep = func(step int) {
			if step == stop {
				cancel()
			}
		}
		j := newJob(t, in, Options{Raw: true, TokenIDs: true, InFlight: 50}, e, dir)
		defer j.Folder.Close()
		return e, j.Run(ctx)
	}
	whole := t.TempDir()
	e, err := run(whole, 0)
	if err != nil {
		t.Fatal(err)
	}
	if e.asked != asking || e.added != requests {
		t.Errorf("%d of %d requests ask for the prompt, want %d of %d", e.asked, e.added, asking, requests)
	}
	want := scoredRows(t, whole)
	if len(want) != samples {
		t.Fatalf("%d output rows, want %d", len(want), samples)
	}
	for _, r := range want {
		tops := []int{2, 0, 0, 1, 0}[r.Row]
		switch n := int(r.Given) - 1; {
		case r.Row == 1:
			if len(r.Chosen)+len(r.Top) != 0 {
				t.Errorf("row %d, sample %d has what nobody asked for", r.Row, r.Sample)
			}
		case len(r.Chosen) != n || len(r.Top) != n || len(r.Top[n-1]) != tops || r.Chosen[n-1].Logprob != -float32(n) ||
			r.Chosen[n-1].Token == "":
			t.Errorf("row %d, sample %d of a prompt of %d tokens: %v, %v", r.Row, r.Sample, r.Given, r.Chosen, r.Top)
		}
		if only := r.Row == 3; only != (len(r.Tokens) == 0) || only && r.Reason != string(engine.Length) {
			t.Errorf("row %d, sample %d: %v, %s", r.Row, r.Sample, r.Tokens, r.Reason)
		}
	}
	stopped := 0
	for stop := 1; stop <= e.steps; stop++ {
		dir := t.TempDir()
		if _, err := run(dir, stop); errors.Is(err, ErrInterrupted) {
			stopped++
			_, err = run(dir, 0)
			if err != nil {
				t.Fatal(stop, err)
			}
		} else if err != nil {
			t.Fatal(stop, err)
		}
		if d := cmp.Diff(want, scoredRows(t, dir)); d != "" {
			t.Errorf("stopped in step %d: %s", stop, d)
		}
	}
	if stopped < 5 {
		t.Errorf("the job was stopped %d times: the test tests little", stopped)
	}
}

// What the rows in flight take has the prompt's log-probabilities in it, once, and is
// nothing when all are done.
func TestScoresAreCounted(t *testing.T) {
	r := &row{prompt: make([]int32, 1001)}
	free := r.bytes()
	r.params.PromptLogprobs, r.params.N = 21, 8
	if got := r.bytes() - free; got < 1000*21*32 || got > 1000*21*64 {
		t.Errorf("%d bytes of 1000 places with 21 tokens each", got)
	}
	e := &scorer{stub: stub{vocab: 2000, length: 9}, scored: map[int64]int{}}
	f := &flow{o: &Options{InFlight: 8}, engine: e, aboard: &Aboard{}, live: map[int64]*sample{}, ended: true,
		text: demoText(t)}
	f.pending = []*row{{prompt: make([]int32, 9), params: Params{N: 2, Sampling: engine.Sampling{PromptLogprobs: 3}}}}
	most := f.pending[0].bytes()
	if err := f.admit(t.Context()); err != nil || f.bytes != most || most < 8*3*32 {
		t.Fatalf("%d bytes in flight, want %d, %v", f.bytes, most, err)
	}
	last := f.bytes
	for len(f.live) > 0 {
		tokens, err := e.Step()
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range tokens {
			if err := f.take(k); err != nil {
				t.Fatal(err)
			}
			last = max(last, f.bytes)
		}
	}
	if r := f.done.rows[0]; last < most+tokenBytes || r.bytes() != most+r.samples[0].bytes()+r.samples[1].bytes() {
		t.Errorf("%d bytes at most, %d before; the row has %d, and samples of %d and %d", last, most, r.bytes(),
			r.samples[0].bytes(), r.samples[1].bytes())
	}
	if f.bytes != 0 || len(f.done.rows) != 1 || len(f.done.samples) != 2 {
		t.Errorf("%d bytes are left of %d rows, %d samples", f.bytes, len(f.done.rows), len(f.done.samples))
	}
	if a, b := f.done.samples[0].prompt, f.done.samples[1].prompt; len(a.chosen) != 8 || &a.chosen[0] != &b.chosen[0] ||
		&a.top[0] != &b.top[0] {
		t.Error("the samples have lists of their own")
	}
}

func linesFile(t *testing.T, lines []string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rows.jsonl")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestLogprobsAreCounted: what a row takes grows by the tokens of its samples and their
// log-probabilities.
func TestLogprobsAreCounted(t *testing.T) {
	top := []engine.Logprob{{Token: 1}, {Token: 2}, {Token: 3}}
	r := &row{params: Params{Sampling: engine.Sampling{Logprobs: 4, IgnoreEOS: true, MaxTokens: 99}}}
	s := &sample{row: r}
	const n = 10
	for range n {
		s.accept(engine.Token{Token: 7, Top: top})
	}
	if got := r.bytes(); got != s.bytes() || got < n*4*32 || got > n*4*64+n*64 {
		t.Errorf("%d bytes of %d tokens with 4 log-probabilities each, %d of the sample", got, n, s.bytes())
	}
}

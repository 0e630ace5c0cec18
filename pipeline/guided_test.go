package pipeline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"glmbatch/datasets"
	"glmbatch/engine"
	"glmbatch/pipeline/guide"
)

// demoGuides are those of the demo's tokenizer.
func demoGuides(t testing.TB) *Guides {
	o := guide.Options{Ends: []int32{2027, 2034, 2036}, Boxes: 1, Cache: t.TempDir()}
	if dir, err := os.UserCacheDir(); err == nil { // where the program keeps it too
		o.Cache = filepath.Join(dir, "glmbatch", "guide")
	}
	tok := demoText(t).Tokenizer
	g := &Guides{New: func(ctx context.Context) (*guide.Guides, error) { return guide.New(ctx, tok, o) }}
	t.Cleanup(g.Close)
	return g
}

// guidedInput has a free row and some whose guides can be followed, or not.
func guidedInput(t testing.TB) *datasets.Input {
	rows := `{"prompt":"free"}` + "\n"
	for i := range 20 {
		re := `(?=a)b` // it is not supported
		if i%2 == 0 {
			re = `[ab]{3}`
		}
		rows += fmt.Sprintf(`{"prompt":"row %d","guided_regex":%q}`, i, re) + "\n"
	}
	path := filepath.Join(t.TempDir(), "rows.jsonl")
	if err := os.WriteFile(path, []byte(rows), 0o666); err != nil {
		t.Fatal(err)
	}
	in, err := datasets.OpenLines([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close() })
	return in
}

// What was said of a row's guide is in the journal: a job that goes on where the guides
// do not work at all writes the rows that were finished as they were.
func TestGuideVerdictsAreKept(t *testing.T) {
	in, dir := guidedInput(t), t.TempDir()
	o := Options{InFlight: 50, Window: 1, Seed: 5}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	e := &freeLast{stub: stub{vocab: 2000, length: 9}}
	e.onStep = func(step int) {
		if step == 20 { // all but the free row are finished
			cancel()
		}
	}
	j := newJob(t, in, o, e, dir)
	j.Text.Guides = demoGuides(t)
	if err := j.Run(ctx); !errors.Is(err, ErrInterrupted) {
		t.Fatal(err)
	}
	if n := j.Counts.Rows.Load(); n != in.Rows-1 {
		t.Fatalf("%d rows are finished, want all but one", n)
	}
	j.Folder.Close()

	j = newJob(t, in, o, &stub{vocab: 2000, length: 9}, dir)
	j.Text.Guides = &Guides{New: func(context.Context) (*guide.Guides, error) {
		t.Error("a row that is finished is judged again")
		return nil, errors.New("no memory")
	}}
	if err := j.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	rows := readOut(t, dir)
	if int64(len(rows)) != in.Rows {
		t.Fatalf("%d rows", len(rows))
	}
	for i, r := range rows {
		bad := i > 0 && i%2 == 0
		if bad != (r.Code == BadParams) || bad != strings.HasPrefix(r.Error, "guided_regex: ") {
			t.Errorf("row %d: %+v", i, r)
		}
	}
}

// freeLast is a stub whose first request does not end.
type freeLast struct{ stub }

func (f *freeLast) Step() (tokens []engine.Token, err error) {
	for _, q := range f.seqs {
		if q.ID == 0 {
			q.want = q.made + 2
		}
	}
	return f.stub.Step()
}

// Guides that do not work end the job, with the rows before them, and are no row's error.
func TestGuidesFail(t *testing.T) {
	in, dir := guidedInput(t), t.TempDir()
	full := errors.New("no memory for it")
	j := newJob(t, in, Options{}, &stub{vocab: 2000, length: 9}, dir)
	j.Text.Guides = &Guides{New: func(context.Context) (*guide.Guides, error) { return nil, full }}
	err := j.Run(context.Background())
	if !errors.Is(err, full) || errors.Is(err, ErrInput) || errors.Is(err, ErrOutput) ||
		!strings.Contains(err.Error(), "row 1: guided_regex: ") {
		t.Errorf("%v", err)
	}
	if n := j.Counts.Errors.Load(); n != 0 {
		t.Errorf("%d rows have errors", n)
	}
	j.Folder.Close()
	j = newJob(t, in, Options{}, &stub{vocab: 2000, length: 9}, dir)
	j.Text.Guides = demoGuides(t)
	if err := j.Run(context.Background()); err != nil || j.Counts.Errors.Load() != 10 {
		t.Errorf("where they work: %v, %d errors", err, j.Counts.Errors.Load())
	}
	if _, err := j.Plan.Prompt(context.Background(), j.Text, 2); err == nil ||
		!strings.Contains(err.Error(), BadParams) {
		t.Errorf("the prompt of a row whose guide cannot be followed: %v", err)
	}
}

// One who was stopped while the guides were made leaves them to be made by the next.
func TestGuidesOfStopped(t *testing.T) {
	made := 0
	g := &Guides{New: func(ctx context.Context) (*guide.Guides, error) {
		made++
		return nil, errors.Join(ctx.Err())
	}}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := g.get(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := g.get(context.Background()); err != nil || made != 2 {
		t.Errorf("%v, made %d times", err, made)
	}
	g.Close()
	if _, err := g.get(context.Background()); err != errGuidesClosed {
		t.Error(err)
	}
}

// Rows that ask for guides are seen before the job, wherever they do.
func TestPlanGuided(t *testing.T) {
	choice, err := guide.NewChoice([]string{"a"})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		`{"prompt":"a"}`: false,
		`{"prompt":"a","sampling_params":{"temperature":1}}`:                                  false,
		`{"prompt":"a","sampling_params":{"temperature":1,"guided_regex":"x"}}`:               true,
		`{"prompt":"a","sampling_params":"{\"response_format\":{\"type\":\"json_object\"}}"}`: true,
		`{"prompt":"a","guided_choice":["x"]}`:                                                true,
		`{"custom_id":"1","method":"POST","url":"/v1/chat/completions","body":{"messages":[],` +
			`"response_format":{"type":"json_object"}}}`: true,
		`{"custom_id":"1","method":"POST","url":"/v1/chat/completions","body":{"messages":[]}}`: false,
	} {
		path := filepath.Join(t.TempDir(), "rows.jsonl")
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		in, err := datasets.OpenLines([]string{path})
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		for _, all := range []bool{false, true} {
			var o Options
			if all {
				o.Params.Guide, o.Params.GuidedBy = choice, "guided_choice"
			}
			p, err := NewPlan(in, o)
			if err != nil {
				t.Fatal(text, err)
			}
			if have := p.Guided(); have != (want || all) {
				t.Errorf("%s: %t", text, have)
			}
		}
	}
}

package engine_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"glmbatch/datasets/demo"
	"glmbatch/engine"
	"glmbatch/engine/checkpoint"
	"glmbatch/engine/glm5"
	"glmbatch/kernels"
	"glmbatch/kernels/cpu"
	"glmbatch/kernels/ranks"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// load puts the demo model on ranks that end with the test.
func load(t testing.TB, tp, threads int, o glm5.Options) *glm5.Model {
	t.Helper()
	ck, err := checkpoint.FromFiles(demo.Files())
	if err != nil {
		t.Fatal(err)
	}
	return loadFrom(t, ck, tp, threads, o)
}

func loadFrom(t testing.TB, ck *checkpoint.Checkpoint, tp, threads int, o glm5.Options) *glm5.Model {
	t.Helper()
	devices, err := cpu.Open(tp, cpu.Options{Threads: threads})
	if err != nil {
		t.Fatal(err)
	}
	g, err := ranks.New(devices, ranks.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	m, err := glm5.Load(t.Context(), ck, g, o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// answer is all that a request gave.
type answer struct {
	tokens   []int32
	logprobs []float32
	top      []engine.Logprob
	labels   []engine.Logprob
	prompt   []engine.Token
	reason   engine.Reason
}

// add takes in what a step gave.
func (a *answer) add(k engine.Token) {
	a.reason = k.Reason
	if k.Prompt {
		a.prompt = append(a.prompt, k)
		return
	}
	a.tokens, a.logprobs, a.top, a.labels = append(a.tokens, k.Token), append(a.logprobs, k.Logprob), append(a.top,
		k.Top...), append(a.labels, k.Labels...)
}

func (a answer) String() string {
	return fmt.Sprintf("%v %v %v %v %v %s", a.tokens, a.logprobs, a.top, a.labels, a.prompt, a.reason)
}

// answers runs requests to their ends, adding some of them later.
func answers(t testing.TB, m *glm5.Model, o engine.Options, rs []engine.Request) (map[int64]answer, engine.Stats) {
	t.Helper()
	e, err := engine.New(m, o)
	if err != nil {
		t.Fatal(err)
	}
	got := map[int64]answer{}
	next := 0
	for next < len(rs) || !e.Idle() {
		for ; next < len(rs) && (next < len(rs)/2 || e.Stats().Steps > int64(next)); next++ {
			if err := e.Add(rs[next]); err != nil {
				t.Fatal(err)
			}
		}
		if e.Idle() && next < len(rs) {
			if err := e.Add(rs[next]); err != nil {
				t.Fatal(err)
			}
			next++
		}
		tokens, err := e.Step()
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range tokens {
			a := got[k.ID]
			if a.reason != engine.Going {
				t.Fatalf("request %d goes on after its end", k.ID)
			}
			a.add(k)
			got[k.ID] = a
		}
	}
	if s := e.Stats(); s.Pages != 0 || s.Running+s.Waiting != 0 {
		t.Fatalf("the engine is idle with %+v", s)
	}
	return got, e.Stats()
}

// requests of many kinds: lengths on both sides of the indexer's top-k (64) and
// of pages, greedy and sampled, with and without penalties and ends.
func requests(n int, vocab int32) []engine.Request {
	r := rand.New(rand.NewPCG(1, 2))
	var rs []engine.Request
	for i := range n {
		q := engine.Request{ID: int64(100 + i), Prompt: make([]int32, 1+r.IntN([]int{5, 40, 150}[i%3]))}
		for j := range q.Prompt {
			q.Prompt[j] = r.Int32N(vocab)
		}
		q.Sampling = engine.Sampling{MaxTokens: 1 + r.IntN(25), Seed: uint64(i), IgnoreEOS: i%4 != 0, Logprobs: i % 5}
		if i%2 == 1 {
			q.Sampling.Temperature = 0.5 + r.Float32()
			q.Sampling.TopP, q.Sampling.TopK = 0.95, []int{0, 20}[i%4/2]
		}
		if i%3 == 1 {
			q.Sampling.Repetition = 1.3
		}
		if i%6 == 3 { // grows over several pages
			q.Sampling.MaxTokens, q.Sampling.IgnoreEOS = 140, true
		}
		q.Sampling.StopTokens = []int32{2040} // so that the length is not known before
		if i%7 == 0 {
			q.Sampling.StopTokens = []int32{3, 5, 7, 11}
		}
		rs = append(rs, q)
	}
	return rs
}

// A request's tokens, and their log-probabilities to the bit, are its own: no
// limit, order, thread or neighbour changes them.
func TestAnswersDependOnTheRequestAlone(t *testing.T) {
	const tp = 8
	rs := requests(12, 2048)
	m := load(t, tp, 2, glm5.Options{MaxRows: 300, MaxSeqs: 32, MaxLogits: 64, Pages: 64, Context: 256,
		MTP: true, Drafts: 5})
	want, _ := answers(t, m, engine.Options{MaxSeqs: 1}, rs)
	if len(want) != len(rs) {
		t.Fatalf("%d of %d requests answered", len(want), len(rs))
	}
	single := load(t, tp, 1, m.Options())
	shuffled := slices.Clone(rs)
	rand.New(rand.NewPCG(3, 4)).Shuffle(len(rs), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	for _, c := range []struct {
		name string
		m    *glm5.Model
		o    engine.Options
		rs   []engine.Request
	}{
		{"all at once", m, engine.Options{}, rs},
		{"shuffled", m, engine.Options{}, shuffled},
		{"small chunks", m, engine.Options{MaxBatchTokens: 7}, rs},
		{"single rows", m, engine.Options{MaxBatchTokens: 1}, rs[:3]},
		{"few pages", m, engine.Options{KVTokens: 4 * kernels.PageTokens}, shuffled},
		{"one thread", single, engine.Options{MaxBatchTokens: 64, MaxSeqs: 5}, shuffled},
		{"ahead", m, engine.Options{Ahead: 2}, rs},
		{"ahead, alone", m, engine.Options{Ahead: 2, MaxSeqs: 1}, rs},
		{"ahead, small chunks", m, engine.Options{Ahead: 2, MaxBatchTokens: 7}, shuffled},
		{"ahead, single rows", m, engine.Options{Ahead: 2, MaxBatchTokens: 1}, rs[:3]},
		{"drafts", m, engine.Options{Speculate: engine.Speculation{Drafts: 3}}, rs},
		{"drafts, few pages", m, engine.Options{Speculate: engine.Speculation{Drafts: 5},
			KVTokens: 4 * kernels.PageTokens, MaxBatchTokens: 64}, shuffled},
		{"drafts of n-grams", m, engine.Options{Speculate: engine.Speculation{Drafts: 4, NGram: true}, Ahead: 2}, rs},
		{"ahead, few pages", m, engine.Options{Ahead: 2, KVTokens: 4 * kernels.PageTokens}, shuffled},
	} {
		got, stats := answers(t, c.m, c.o, c.rs)
		if c.o.KVTokens > 0 && stats.Preempted == 0 {
			t.Errorf("%s: no sequence was preempted: the case has lost its point", c.name)
		}
		for id := range maps.Keys(got) {
			if got[id].String() != want[id].String() {
				t.Errorf("%s: request %d:\n got %v\nwant %v", c.name, id, got[id], want[id])
			}
		}
		if len(got) != len(c.rs) {
			t.Errorf("%s: %d of %d requests answered", c.name, len(got), len(c.rs))
		}
	}
}

func TestEnds(t *testing.T) {
	m := load(t, 1, 2, glm5.Options{MaxRows: 64, MaxSeqs: 4, Context: 96})
	prompt := make([]int32, 90)
	for i := range prompt {
		prompt[i] = int32(3 + i)
	}
	free, _ := answers(t, m, engine.Options{},
		[]engine.Request{{ID: 1, Prompt: prompt[:10], Sampling: engine.Sampling{MaxTokens: 20, IgnoreEOS: true}}})
	a := free[1]
	if a.reason != engine.Length || len(a.tokens) != 20 {
		t.Fatalf("max_tokens 20 gave %v", a)
	}
	for _, l := range a.logprobs {
		if l != 0 {
			t.Fatalf("log-probabilities that nobody asked for: %v", a)
		}
	}
	full, _ := answers(t, m, engine.Options{},
		[]engine.Request{{ID: 1, Prompt: prompt, Sampling: engine.Sampling{IgnoreEOS: true}}})
	if a := full[1]; a.reason != engine.Length || len(a.tokens) != 6 {
		t.Fatalf("a context of 96 and 90 tokens gave %v", a)
	}
	stop := a.tokens[slices.IndexFunc(a.tokens, func(k int32) bool { return k != a.tokens[0] })]
	stopped, _ := answers(t, m, engine.Options{},
		[]engine.Request{{ID: 1, Prompt: prompt[:10],
			Sampling: engine.Sampling{MaxTokens: 20, IgnoreEOS: true, StopTokens: []int32{stop}}}})
	if b := stopped[1]; b.reason != engine.Stop || b.tokens[len(b.tokens)-1] != stop || len(b.tokens) != 1+
		slices.Index(a.tokens, stop) {
		t.Fatalf("stop token %d gave %v, of %v", stop, b, a)
	}
}

func TestAddRefuses(t *testing.T) {
	m := load(t, 1, 1, glm5.Options{MaxRows: 64, MaxSeqs: 4, Context: 300, Pages: 2})
	e, err := engine.New(m, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ok := engine.Request{ID: 1, Prompt: []int32{1}, Sampling: engine.Sampling{MaxTokens: 3}}
	if err := e.Add(ok); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		edit func(*engine.Request)
		want error
	}{
		{"same ID", func(r *engine.Request) { r.ID = 1 }, engine.ErrRequest},
		{"no prompt", func(r *engine.Request) { r.Prompt = nil }, engine.ErrRequest},
		{"token", func(r *engine.Request) { r.Prompt = []int32{2048} }, engine.ErrRequest},
		{"temperature", func(r *engine.Request) { r.Sampling.Temperature = -1 }, engine.ErrRequest},
		{"top_p", func(r *engine.Request) { r.Sampling.TopP = 2 }, engine.ErrRequest},
		{"logprobs", func(r *engine.Request) { r.Sampling.Logprobs = 99 }, engine.ErrRequest},
		{"too long for the context", func(r *engine.Request) { r.Prompt = make([]int32, 300) }, engine.ErrTooLong},
		{"too long for the cache", func(r *engine.Request) { r.Sampling.MaxTokens = 0 }, engine.ErrTooLong},
	} {
		r := ok
		r.ID = 2
		c.edit(&r)
		if err := e.Add(r); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if !e.Cancel(1) || e.Cancel(1) || !e.Idle() {
		t.Error("Cancel")
	}
	if tokens, err := e.Step(); len(tokens) != 0 || err != nil {
		t.Errorf("an idle step gave %v, %v", tokens, err)
	}
}

func TestOptionsNameEveryFault(t *testing.T) {
	m := load(t, 1, 1, glm5.Options{MaxRows: 64, MaxSeqs: 4, Context: 300, Pages: 2})
	_, err := engine.New(m, engine.Options{MaxBatchTokens: 65, MaxSeqs: -1, KVTokens: 63})
	for _, name := range []string{"MaxBatchTokens", "MaxSeqs", "KVTokens"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v does not name %s", err, name)
		}
	}
}

// Sequences that end while the step after is on its way, by a stop token or by
// Cancel, leave nothing behind: the tokens are those of steps in lockstep.
func TestAheadDropsWhatHasEnded(t *testing.T) {
	m := load(t, 2, 2, glm5.Options{MaxRows: 64, MaxSeqs: 3, Context: 256, Pages: 16})
	request := func(id int64, s engine.Sampling) engine.Request {
		return engine.Request{ID: id, Prompt: []int32{int32(5 + id), 6, 7, 8}, Sampling: s}
	}
	free := engine.Sampling{MaxTokens: 30, IgnoreEOS: true, Temperature: 1, Repetition: 1.1, Logprobs: 2}
	want, _ := answers(t, m, engine.Options{Ahead: 1},
		[]engine.Request{request(1, free), request(2, free), request(3, free)})
	stopped := free
	stopped.StopTokens = want[2].tokens[5:6]
	at := slices.Index(want[2].tokens, want[2].tokens[5])
	e, err := engine.New(m, engine.Options{Ahead: 2})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []engine.Request{request(1, free), request(2, stopped), request(3, free)} {
		if err := e.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	got := map[int64]answer{}
	const cancelled, again = 9, 4 // tokens of request 3 until Cancel; the ID of its second life
	for !e.Idle() {
		tokens, err := e.Step()
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range tokens {
			a := got[k.ID]
			a.add(k)
			got[k.ID] = a
			if k.ID == 3 && len(a.tokens) == cancelled {
				if !e.Cancel(3) || e.Cancel(3) {
					t.Error("Cancel")
				}
				r := request(again, free)
				r.Prompt = request(3, free).Prompt
				if err := e.Add(r); err != nil { // in the seat that is still computed for
					t.Fatal(err)
				}
			}
		}
	}
	if got[1].String() != want[1].String() || got[again].String() != want[3].String() {
		t.Errorf("got %v and %v,\nwant %v and %v", got[1], got[again], want[1], want[3])
	}
	if b := got[2]; b.reason != engine.Stop || !slices.Equal(b.tokens, want[2].tokens[:at+1]) {
		t.Errorf("stop token %d gave %v, of %v", stopped.StopTokens[0], b, want[2])
	}
	if a := got[3]; a.reason != engine.Going || !slices.Equal(a.tokens, want[3].tokens[:cancelled]) {
		t.Errorf("cancelled after %d tokens: %v, of %v", cancelled, a, want[3])
	}
	if s := e.Stats(); s.Pages != 0 || s.Running+s.Waiting != 0 {
		t.Errorf("idle with %+v", s)
	}
}

// The observers see every step; phases fill it; timed calls have ordered spans.
func TestObservers(t *testing.T) {
	for _, ahead := range []int{1, 2} {
		t.Run(fmt.Sprint("ahead=", ahead), func(t *testing.T) { testObservers(t, ahead) })
	}
}

func testObservers(t *testing.T, ahead int) {
	m := load(t, 2, 2, glm5.Options{MaxRows: 32, MaxSeqs: 4, Context: 256})
	var infos []engine.StepInfo
	traced := map[int64]bool{}
	o := engine.Options{
		Ahead: ahead,
		Trace: func(step int64, _ string) bool { return step%2 == 1 },
		OnTrace: func(tr kernels.Trace) {
			traced[tr.Step] = true
			if len(tr.Spans) != 2 || len(tr.Spans[0]) != len(tr.Calls) || !tr.Shared {
				t.Errorf("step %d: %d ranks of spans", tr.Step, len(tr.Spans))
			}
			for i, s := range tr.Spans[0] {
				if s.Start <= 0 || s.End < s.Start {
					t.Errorf("step %d call %d %s: span %+v", tr.Step, i, tr.Calls[i].Kernel, s)
				}
			}
		},
		OnStep: func(s engine.StepInfo) { infos = append(infos, s) },
	}
	_, stats := answers(t, m, o, requests(6, 2048))
	kinds := map[string]int{}
	sampled := 0
	for i, s := range infos {
		kinds[s.Kind]++
		sampled += s.Sampled
		if s.Step != int64(i) || s.Recorded != (i%2 == 1) || traced[s.Step] != s.Recorded {
			t.Errorf("step %d: %+v", i, s)
		}
		x := &s.Times
		if x.Ahead() != (ahead > 1 && i > 0) {
			t.Errorf("step %d: ahead is %v", i, x.Ahead())
		}
		phases := []kernels.Interval{x.Schedule, x.Upload, x.Launch, x.Device, x.Sample}
		if x.Ahead() {
			phases = []kernels.Interval{x.Sample, x.Schedule, x.Upload, x.Launch, x.Device}
		}
		at, sum := x.Wall.Start, int64(0)
		for _, p := range phases {
			if p.Start < at || p.NS() < 0 {
				t.Errorf("step %d: phases overlap: %+v", i, x)
			}
			at, sum = p.End, sum+p.NS()
		}
		if at != x.Wall.End || !x.Ahead() && sum != x.Wall.NS() {
			t.Errorf("step %d: phases do not fill it: %+v", i, x)
		}
	}
	if int64(len(infos)) != stats.Steps || int64(sampled) != stats.Sampled || kinds["prefill"] == 0 ||
		kinds["decode"] == 0 || kinds["mixed"] == 0 {
		t.Errorf("%d steps %v of %+v", len(infos), kinds, stats)
	}
}

// TestOnBegin: a step is told when its inputs are there and no other is on its way, with
// all of its tokens.
func TestOnBegin(t *testing.T) {
	for _, ahead := range []int{1, 2} {
		alone := true
		var begun, done []int32 // tokens of the steps
		e, err := engine.New(load(t, 1, 1, glm5.Options{MaxSeqs: 3, MaxRows: 16}), engine.Options{
			Ahead: ahead,
			Alone: func(int64, string) bool { return alone },
			OnBegin: func(d engine.Done) error {
				if len(d.Batch.Tokens) != d.Info.Tokens || len(d.Trace.Calls) == 0 ||
					d.Trace.Calls[0].Kernel == "feed" || d.Trace.Step != d.Info.Step {
					t.Errorf("%d tokens of %+v, %d calls", len(d.Batch.Tokens), d.Info, len(d.Trace.Calls))
				}
				begun = append(begun, d.Batch.Tokens...)
				return nil
			},
			OnStepDone: func(d engine.Done) error {
				done = append(done, d.Batch.Tokens...)
				return nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		add := func() {
			if err := e.Add(engine.Request{ID: 1, Prompt: []int32{5, 6, 7},
				Sampling: engine.Sampling{MaxTokens: 6, IgnoreEOS: true}}); err != nil {
				t.Fatal(err)
			}
			for !e.Idle() {
				if _, err := e.Step(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if add(); len(begun) != 3+5 || !slices.Equal(begun, done) {
			t.Errorf("%d ahead: begun with %v, done with %v", ahead, begun, done)
		}
		alone, begun = false, nil
		if add(); ahead == 2 && len(begun) != 3 {
			t.Errorf("launched ahead: %d tokens of steps were told", len(begun))
		}
		failed := errors.New("no room")
		if e, err = engine.New(load(t, 1, 1, glm5.Options{}), engine.Options{OnBegin: func(engine.Done) error {
			return failed
		}}); err != nil {
			t.Fatal(err)
		}
		if err := e.Add(engine.Request{Prompt: []int32{5, 6}, Sampling: engine.Sampling{MaxTokens: 2}}); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Step(); !errors.Is(err, failed) {
			t.Errorf("the error is %v", err)
		}
	}
}

// TestOnLaunch: before a step is launched its requests are said, and those of the steps
// that are still on their way; and when none is.
func TestOnLaunch(t *testing.T) {
	for _, ahead := range []int{1, 2} {
		var aboard, last []int64 // last: of the last step
		calls, none := 0, 0
		e, err := engine.New(load(t, 1, 1, glm5.Options{MaxSeqs: 3, MaxRows: 16}),
			engine.Options{Ahead: ahead, OnLaunch: func(ids []int64) error {
				calls++
				if !slices.IsSorted(ids) || slices.Equal(ids, aboard) || len(ids) > 3*ahead {
					t.Errorf("launching %v after %v", ids, aboard)
				}
				if aboard = slices.Clone(ids); len(ids) == 0 {
					none++
				} else {
					last = aboard
				}
				return nil
			}})
		if err != nil {
			t.Fatal(err)
		}
		for id := range int64(7) {
			prompt := make([]int32, 3+10*id)
			for i := range prompt {
				prompt[i] = int32(i) + 5
			}
			if err := e.Add(engine.Request{ID: id, Prompt: prompt,
				Sampling: engine.Sampling{MaxTokens: 4 + int(id), IgnoreEOS: true}}); err != nil {
				t.Fatal(err)
			}
		}
		steps := 0
		for ; !e.Idle(); steps++ {
			tokens, err := e.Step()
			if err != nil {
				t.Fatal(err)
			}
			for _, token := range tokens {
				if ahead == 1 && !slices.Contains(last, token.ID) {
					t.Errorf("a token of %d, aboard were %v", token.ID, last)
				}
			}
			if ahead == 1 && len(aboard) > 0 {
				t.Errorf("after a step %v are aboard", aboard)
			}
		}
		if len(aboard) > 0 || ahead == 1 && (none != steps || calls != 2*steps) || ahead > 1 &&
			(none > 2 || calls >= steps) {
			t.Errorf("%d calls in %d steps, %d of them of none, and %v at the end", calls, steps, none, aboard)
		}
		failed := errors.New("no room")
		e, err = engine.New(load(t, 1, 1, glm5.Options{}), engine.Options{OnLaunch: func([]int64) error {
			return failed
		}})
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Add(engine.Request{Prompt: []int32{5, 6}, Sampling: engine.Sampling{MaxTokens: 2}}); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Step(); !errors.Is(err, failed) {
			t.Errorf("the error is %v", err)
		}
	}
}

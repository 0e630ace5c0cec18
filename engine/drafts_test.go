package engine_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"glmbatch/engine"
	"glmbatch/engine/glm5"
	"glmbatch/kernels"
)

// few allows most tokens, those that the last two decide, and knows what follows drafts.
type few struct {
	had, drafts []int32
	narrow      bool // two tokens only
	lost        int  // drafts behind which it fails; 0: it does not
	may         int  // drafts that it said may come
	asked       int  // drafts that it was asked about
}

func (g *few) Ask(drafts ...int32) {
	g.drafts = slices.Clone(drafts)
	g.asked += len(drafts)
}

func (g *few) allows(behind int, t int32) bool {
	had := append(append([]int32{1, 1}, g.had...), g.drafts[:behind]...)
	a, b := had[len(had)-2], had[len(had)-1]
	if g.narrow {
		first := (3*b+a%2)%8 + 1
		return t == first || t == first+1
	}
	return (t+a+3*b)%9 != 4
}

func (g *few) May() (n int) {
	for n < len(g.drafts) && g.allows(n, g.drafts[n]) {
		n++
	}
	g.may += n
	return n
}

func (g *few) Mask(drafts int, words []uint64) (bool, error) {
	if g.lost > 0 && drafts >= g.lost {
		return false, errors.New("there is no way behind these drafts")
	}
	for t := range int32(1800) {
		if g.allows(drafts, t) {
			words[t/64] |= 1 << (t % 64)
		}
	}
	return true, nil
}

func (g *few) Add(tokens ...int32) { g.had = append(g.had, tokens...) }
func (g *few) Close()              {}

// ways are how drafts are made, in steps that wait for masks and in open ones.
func ways(drafts int) map[string]engine.Options {
	all := map[string]engine.Options{}
	for _, ahead := range []int{1, 2} {
		for _, ngram := range []bool{false, true} {
			name := fmt.Sprintf("ahead %d, ngram %t", ahead, ngram)
			all[name] = engine.Options{Ahead: ahead, Speculate: engine.Speculation{Drafts: drafts, NGram: ngram}}
		}
	}
	return all
}

// A row of a guided request has the mask of its own place, behind the drafts before it, and
// drafts that are not allowed have no row.
func TestDraftsUnderGuides(t *testing.T) {
	const most = 4
	m := load(t, 1, 1, glm5.Options{MaxRows: 40, MaxSeqs: 4, MaxLogits: 24, Context: 200, Pages: 12,
		MTP: true, Drafts: most})
	requests := func(lost int) ([]engine.Request, []*few) {
		var list []engine.Request
		var guides []*few
		for i := range 4 {
			g := &few{narrow: i%2 == 0, lost: lost}
			s := engine.Sampling{MaxTokens: 40, IgnoreEOS: true, Seed: uint64(i), Temperature: float32(i/2) * .6,
				Logprobs: 2}
			list = append(list, engine.Request{ID: int64(i), Prompt: []int32{5, int32(7 * i), 9}, Sampling: s,
				Guide: g})
			guides = append(guides, g)
		}
		return list, guides
	}
	list, _ := requests(0)
	want, _ := answers(t, m, engine.Options{Ahead: 1}, list)
	for name, o := range ways(most) {
		for _, lost := range []int{0, 1, 2} {
			t.Run(fmt.Sprintf("%s, lost %d", name, lost), func(t *testing.T) {
				list, guides := requests(lost)
				got, stats := answers(t, m, o, list)
				for id, a := range want {
					if got[id].String() != a.String() {
						t.Errorf("request %d:\nwith drafts %v\nwithout     %v", id, got[id], a)
					}
				}
				asked, may := 0, 0
				for _, g := range guides {
					asked, may = asked+g.asked, may+g.may
				}
				// Near a request's end there is no room for all of them.
				if n := int(stats.Drafted); n > may || n < may-3*len(list)*most || !o.Speculate.NGram && may == asked {
					t.Errorf("%d rows of drafts, of %d that may come, of %d", n, may, asked)
				}
				if n := stats.Accepted; (n == 0) != (lost == 1) || n == stats.Drafted {
					t.Errorf("%d of %d drafts were right", n, stats.Drafted)
				}
			})
		}
	}
}

// Who gets a step when it begins gets its masks, also those behind drafts.
func TestBeginKnowsMasks(t *testing.T) {
	const most = 3
	m := load(t, 1, 1, glm5.Options{MaxRows: 40, MaxSeqs: 4, MaxLogits: 16, Context: 200, Pages: 12,
		MTP: true, Drafts: most})
	var begun, done []string
	masks := func(to *[]string) func(d engine.Done) error {
		return func(d engine.Done) error {
			*to = append(*to, fmt.Sprint(d.Info.Step, d.Batch.Masks, d.Batch.Params, d.Batch.Open))
			return nil
		}
	}
	o := engine.Options{Ahead: kernels.MaxAhead, Speculate: engine.Speculation{Drafts: most},
		Alone: func(step int64, _ string) bool { return step%2 == 1 },
		OnBegin: func(d engine.Done) error {
			if d.Info.Step%2 == 0 {
				return nil
			}
			return masks(&begun)(d)
		}, OnStepDone: masks(&done)}
	r := engine.Request{ID: 1, Prompt: []int32{5, 6}, Guide: &few{}}
	r.Sampling = engine.Sampling{MaxTokens: 20, IgnoreEOS: true}
	got, stats := answers(t, m, o, []engine.Request{r})
	if len(got[1].tokens) != 20 || stats.Accepted == 0 {
		t.Fatalf("%d tokens with %d drafts right", len(got[1].tokens), stats.Accepted)
	}
	if len(begun) < 3 || !slices.Equal(begun, done) {
		t.Errorf("%d steps when they begin are not %d when they are done:\n%.300v\n%.300v",
			len(begun), len(done), begun, done)
	}
}

// What steers a row behind drafts knows these as tokens of the output: each parameter alone
// and some together, in which drafts that are right decide what comes next.
func TestDraftsUnderParameters(t *testing.T) {
	const most = 4
	m := load(t, 1, 1, glm5.Options{MaxRows: 60, MaxSeqs: 6, MaxLogits: 30, Context: 200, Pages: 20,
		MTP: true, Drafts: most})
	eight := []int32{40, 41, 42, 43, 44, 45, 46, 47}
	var many []engine.Bias // of which each is next where the others had their turn
	for i := range int32(40) {
		many = append(many, engine.Bias{Token: 100 + i, Gain: 30 - float32(i)/8})
	}
	think := func(budget int) *engine.Thinking {
		return &engine.Thinking{Budget: budget, Open: []int32{9}, Close: []int32{300, 301, 302, 303}}
	}
	for name, s := range map[string]engine.Sampling{
		"repetition":       {Repetition: 1.7, Bias: many},
		"repetition below": {Repetition: .6, Allowed: eight, Temperature: 1},
		"presence":         {Presence: 40, Allowed: eight},
		"presence below":   {Presence: -3, Allowed: eight, Temperature: 1},
		"frequency":        {Frequency: 20, Allowed: eight},
		"frequency below":  {Frequency: -.5, Allowed: eight, Temperature: 1},
		"all penalties":    {Repetition: 1.2, Frequency: .5, Presence: .5, Bias: many, Temperature: .3},
		"bias":             {Bias: many, Temperature: 1},
		"bad words": {BadWords: [][]int32{{41}, {44, 40}, {40, 44, 42}, {45, 46, 45, 46}},
			Allowed: eight, Temperature: 1},
		"min tokens":      {MinTokens: 20, StopTokens: eight[2:6], Allowed: eight, Temperature: 1},
		"stop tokens":     {StopTokens: []int32{46}, Allowed: eight, Temperature: 2},
		"allowed":         {Allowed: eight[:3], Temperature: 1},
		"labels":          {Labels: []int32{3, 40, 41}, Allowed: eight, Temperature: 1, Frequency: .5},
		"prompt":          {PromptLogprobs: 2, Allowed: eight, Temperature: 1, Repetition: 1.3},
		"thinking":        {Thinking: think(7), Allowed: append([]int32{300, 302}, eight...), Temperature: 1},
		"thought at once": {Thinking: think(0), Temperature: 1, Frequency: 2},
		"thinking begins": {Thinking: &engine.Thinking{Open: []int32{47, 47}, Close: []int32{300, 301}},
			Allowed: eight, Bias: []engine.Bias{{Token: 47, Gain: 100}}, Temperature: 1},
		"thinking ends": {Thinking: think(30), Allowed: []int32{300, 301, 302, 303}, Frequency: 20},
	} {
		t.Run(name, func(t *testing.T) {
			var list []engine.Request
			for i := range 4 {
				s := s
				s.MaxTokens, s.Seed, s.Logprobs, s.IgnoreEOS = 32, uint64(i), 2*(i%2), true
				prompt := []int32{9, 40, int32(40 + i), 44, 40}
				list = append(list, engine.Request{ID: int64(i), Prompt: prompt, Sampling: s})
			}
			want, _ := answers(t, m, engine.Options{Ahead: 1}, list)
			right := int64(0)
			for _, ngram := range []bool{false, true} {
				o := engine.Options{Ahead: 2, Speculate: engine.Speculation{Drafts: most, NGram: ngram}}
				got, stats := answers(t, m, o, list)
				for id, a := range want {
					if got[id].String() != a.String() {
						t.Errorf("request %d, ngram %t:\nwith drafts %v\nwithout     %v", id, ngram, got[id], a)
					}
				}
				right += stats.Accepted
			}
			if right == 0 {
				t.Error("no drafts were right")
			}
		})
	}
}

// Tokens that thinking forces are drafts, and right.
func TestForcedDrafts(t *testing.T) {
	m := load(t, 1, 1, glm5.Options{MaxRows: 32, MaxSeqs: 2, MaxLogits: 12, Context: 128, Pages: 4,
		MTP: true, Drafts: 5})
	s := engine.Sampling{MaxTokens: 8, IgnoreEOS: true, Presence: 1000,
		Thinking: &engine.Thinking{Budget: 2, Open: []int32{9}, Close: []int32{300, 301, 302, 303}}}
	// Of 8 tokens 4 in a row are forced.
	for most, steps := range map[int]int64{0: 8, 1: 6, 2: 5, 3: 5, 5: 4} {
		o := engine.Options{Ahead: 2, Speculate: engine.Speculation{Drafts: most, NGram: most > 0}}
		got, stats := answers(t, m, o, []engine.Request{{ID: 1, Prompt: []int32{7, 9}, Sampling: s}})
		if a := got[1].tokens; !slices.Equal(a[2:6], s.Thinking.Close) || stats.Steps != steps {
			t.Errorf("%d drafts: %v in %d steps, want %d", most, a, stats.Steps, steps)
		}
	}
}

// A prompt may repeat what no step samples, or what ends the request: no drafts are behind.
func TestNoDrafts(t *testing.T) {
	m := load(t, 1, 1, glm5.Options{MaxRows: 32, MaxSeqs: 2, MaxLogits: 12, Context: 128, Pages: 4, Tokens: 500})
	o := engine.Options{Speculate: engine.Speculation{Drafts: 5, NGram: true}}
	for name, c := range map[string]struct {
		stop []int32
		last int32 // of what is drafted
		want int64 // drafts of the first step with some
	}{"all": {nil, 300, 4}, "an end": {[]int32{300}, 300, 1}, "padding": {nil, 700, 1}} {
		prompt := []int32{40, 41, 42, c.last, 41, 43, 40, 41}
		s := engine.Sampling{MaxTokens: 6, IgnoreEOS: true, Repetition: 1.1, Allowed: []int32{42}, StopTokens: c.stop}
		drafted := int64(0)
		o.OnStep = func(i engine.StepInfo) {
			if drafted == 0 {
				drafted = int64(i.Drafted)
			}
		}
		answers(t, m, o, []engine.Request{{ID: 1, Prompt: prompt, Sampling: s}})
		if drafted != c.want {
			t.Errorf("%s: %d drafts, want %d", name, drafted, c.want)
		}
	}
}

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

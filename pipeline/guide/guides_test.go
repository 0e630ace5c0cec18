package guide

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"glmbatch/datasets/demo"
	"glmbatch/pipeline/tokenizer"
)

func schemaOf(t testing.TB, text string) Spec {
	t.Helper()
	s, err := NewSchema([]byte(text), Whitespace{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// some are specs for tests that need a few.
func some(t testing.TB) []Spec {
	re, _ := NewRegex("[a-c]{4,9}")
	choice, _ := NewChoice([]string{"one", "two", "three"})
	return []Spec{
		schemaOf(t,
			`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string","maxLength":9}},"required":["a","b"],"additionalProperties":false}`),
		schemaOf(t, `{"type":"array","items":{"enum":["x",1,null]},"maxItems":5}`), re, choice,
	}
}

// A text's sets of tokens are the same with one box and with many, by whoever's side, and
// when the boxes break and grammars are forgotten on the way.
func TestSameSets(t *testing.T) {
	specs := some(t)
	draw := func(g *Guides, i int) []int32 {
		return sampleTokens(t, g, specs[i%len(specs)], false, seeded(uint64(i)), 60)
	}
	alone, _ := newGuides(t, Options{Boxes: 1})
	var want [][]int32
	for i := range 24 {
		want = append(want, draw(alone, i))
	}
	for name, c := range map[string]struct {
		boxes int
		harm  func(w *bench)
	}{
		"many boxes":          {3, nil},
		"boxes that break":    {2, func(w *bench) { w.box.close() }},
		"grammars forgotten":  {2, func(w *bench) { clear(w.grammars) }},
		"boxes that are lost": {2, func(w *bench) { w.drop() }},
	} {
		t.Run(name, func(t *testing.T) {
			g, _ := newGuides(t, Options{Boxes: c.boxes})
			stop := make(chan struct{})
			var harm, all sync.WaitGroup
			if c.harm != nil {
				harm.Go(func() {
					for {
						select {
						case <-stop:
							return
						case <-time.After(5 * time.Millisecond):
						}
						g.mu.Lock()
						benches := slices.Clone(g.benches)
						g.mu.Unlock()
						for _, w := range benches {
							done := make(chan struct{})
							w.jobs <- func() {
								if w.box != nil {
									c.harm(w)
								}
								close(done)
							}
							<-done
						}
					}
				})
			}
			got := make([][]int32, len(want))
			for i := range got {
				all.Go(func() { got[i] = draw(g, i) })
			}
			all.Wait()
			close(stop)
			harm.Wait()
			for i := range got {
				if !slices.Equal(got[i], want[i]) {
					t.Errorf("text %d: %v, want %v", i, got[i], want[i])
				}
			}
		})
	}
}

// A model that thinks may write anything but the end; then the grammar begins.
func TestThinking(t *testing.T) {
	g, tok := newGuides(t, Options{})
	s, _ := NewChoice([]string{"yes", "no"})
	m := g.Start(s, true)
	defer m.Close()
	set := make([]uint64, (tok.VocabSize()+63)/64)
	mask := func() int {
		clear(set)
		if _, err := m.Mask(0, set); err != nil {
			t.Fatal(err)
		}
		for _, e := range demoEnds {
			if set[e/64]>>(e%64)&1 == 1 {
				return -1
			}
		}
		return count(set)
	}
	if n := mask(); n != tok.VocabSize()-len(demoEnds) {
		t.Errorf("%d tokens while it thinks, want all but the end: %d", n, tok.VocabSize())
	}
	for _, id := range tok.Encode(nil, "yes, I think {") {
		m.Add(id)
	}
	if n := mask(); n != tok.VocabSize()-len(demoEnds) {
		t.Errorf("%d tokens while it thinks on", n)
	}
	m.Add(g.think)
	if n := mask(); n < 2 || n > 6 {
		t.Errorf("%d tokens begin yes or no", n)
	}
	for _, id := range tok.Encode(nil, "no") {
		m.Add(id)
	}
	if n := mask(); n != -1 || count(set) != len(demoEnds) {
		t.Errorf("%d tokens at the end", count(set))
	}
	m.Add(demoEnds[0])
}

// What is made to take long, or much memory, is an error of its own and no end of others.
func TestHostile(t *testing.T) {
	g, _ := newGuides(t, Options{Boxes: 1, Limit: 20 * time.Second})
	good := some(t)[0]
	nest := "{}"
	for range 12 {
		nest = `{"anyOf":[{"allOf":[` + nest + `,` + nest + `]},{"type":"string"}]}`
	}
	for name, s := range map[string]Spec{
		"repeats":     {Regex, "((((a{1,1000}){1,1000}){1,1000}){1,1000})"},
		"counts":      {Regex, "[ab]*a[ab]{10000}"},
		"ambiguous":   {Lark, "start: s\ns: s s s s | \"a\" | \"aa\" | \"\"\n"},
		"no end":      {Lark, "start: x\nx: x"},
		"nested":      schemaOf(t, nest),
		"long string": schemaOf(t, `{"type":"string","minLength":1000000,"maxLength":2000000}`),
		"self":        {Schema, `{"$ref":"#"}`},
		"lookahead":   {Regex, "(?=a)b"},
		"not text":    {Regex, "\xff"},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			err := g.Check(s)
			if err == nil { // then its texts go on, or end with an error
				m := g.Start(s, false)
				set := make([]uint64, (g.vocab.tokens+63)/64)
				rng := seeded(1)
				for range 30 {
					clear(set)
					if _, err = m.Mask(0, set); err != nil || count(set) == 0 {
						break
					}
					m.Add(drawFrom(set, rng))
				}
				m.Close()
			}
			t.Logf("%v: %.200v", time.Since(start).Round(time.Millisecond), err)
			if ids := sampleTokens(t, g, good, false, seeded(5), 50); len(ids) < 10 {
				t.Errorf("another text has %d tokens after it", len(ids))
			}
		})
	}
}

// A call that takes too long is broken off: the spec has an error, the next call a new box.
func TestLimit(t *testing.T) {
	g, _ := newGuides(t, Options{Boxes: 1, Limit: 200 * time.Millisecond})
	all := `{"type":"object","properties":{`
	for i := range 3000 {
		all += fmt.Sprintf(`"p%d":{"type":"string","pattern":"^(a|b)*a(a|b){%d}$"},`, i, i%60+1)
	}
	all += `"z":{}}}`
	if err := g.Check(schemaOf(t, all)); err != errLate {
		t.Error(err)
	}
	if g.judge.now() != nil {
		t.Error("its box is kept")
	}
	if err := g.Check(Spec{Regex, "a"}); err != nil {
		t.Error(err)
	}
}

// The call that is broken off is the one that took too long, never one after it, and it
// is the last of its box.
func TestOverdue(t *testing.T) {
	const never, atOnce = time.Hour, -1
	b := &box{}
	if b.overdue(atOnce) {
		t.Error("a box without a call has one that is late")
	}
	at, ok := b.begin()
	if !ok || b.overdue(never) || !b.end(at) || b.overdue(atOnce) {
		t.Error("a call in time is broken off")
	}
	at, ok = b.begin()
	if !ok || !b.overdue(atOnce) || b.end(at) {
		t.Error("a call that is late does not see it")
	}
	if _, ok := b.begin(); ok || b.overdue(atOnce) {
		t.Error("a call begins behind one that was broken off")
	}
}

// What is remembered of specs is small, and does not grow with them.
func TestVerdictsAreSmall(t *testing.T) {
	long := Spec{Lark, "start: " + strings.Repeat("undefined ", 9_000)}
	if a, b := long.key(), (Spec{Regex, long.Text}).key(); a == b {
		t.Error("specs of two kinds have the same key")
	}
	g, _ := newGuides(t, Options{Boxes: 1})
	err := g.Check(long)
	if err == nil || len(err.Error()) > mostSaid+len("…") {
		t.Errorf("an error of %d bytes", len(fmt.Sprint(err)))
	}
	if again := g.Check(long); again != err {
		t.Errorf("it was read again: %v", again)
	}
	if err := verdictOn(long, errors.New(strings.Repeat("é", mostSaid))); len(err.Error()) > mostSaid+len("…") {
		t.Errorf("an error of %d bytes is kept", len(err.Error()))
	}
	for i := range mostVerdicts + 1 {
		g.verdicts[specKey{text: [32]byte{byte(i), byte(i >> 8), byte(i >> 16)}}] = &verdict{}
	}
	if err := g.Check(Spec{Regex, "a"}); err != nil || len(g.verdicts) != 1 {
		t.Errorf("%d verdicts, %v", len(g.verdicts), err)
	}
}

// A box that does not start is no fault of the spec, and is not remembered as one.
func TestMachineFails(t *testing.T) {
	g, _ := newGuides(t, Options{Boxes: 1})
	fresh := g.fresh
	g.fresh = &image{size: (most + 1) << 16} // more than a box may have
	if err := g.Check(Spec{Regex, "ab"}); !errors.Is(err, ErrMachine) {
		t.Errorf("%v, want %v", err, ErrMachine)
	}
	g.fresh = fresh
	if err := g.Check(Spec{Regex, "ab"}); err != nil {
		t.Error(err)
	}
}

// A box that has pages of the image, and one that has a copy, know the same.
func TestImages(t *testing.T) {
	g, _ := newGuides(t, Options{Boxes: 1})
	s := some(t)[0]
	want := sampleTokens(t, g, s, false, seeded(3), 50)
	b, err := g.machine.fast.open(g.fresh)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	shared := g.fresh
	g.fresh = &image{size: shared.size, data: b.memory()}
	done := make(chan struct{})
	g.benches[0].do(func() { g.benches[0].drop(); close(done) })
	<-done
	if got := sampleTokens(t, g, s, false, seeded(3), 50); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if shared.file != nil { // a box's writes are its own
		other := &image{size: shared.size, file: shared.file}
		if c, err := g.machine.fast.open(other); err != nil || !bytes.Equal(c.memory(), b.memory()) {
			t.Error("the image has changed", err)
		} else {
			c.close()
		}
	}
	g.fresh = shared
}

// Guides need an end token, and give up what they have when they are closed.
func TestClose(t *testing.T) {
	tok, err := tokenizer.Load(demo.Files()["tokenizer.json"])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(context.Background(), tok, Options{Ends: []int32{-1, 1 << 20}}); err == nil ||
		!strings.Contains(err.Error(), "no end tokens") {
		t.Error(err)
	}
	g, _ := newGuides(t, Options{})
	m, idle := g.Start(some(t)[0], false), g.Start(some(t)[0], false)
	if _, err := m.Mask(0, make([]uint64, 64)); err != nil {
		t.Error(err)
	}
	g.Close()
	g.Close()
	m.Add(5)
	for _, m := range []*Matcher{m, idle} {
		if _, err := m.Mask(0, make([]uint64, 64)); err == nil {
			t.Error("a matcher of closed guides goes on")
		}
		m.Close()
	}
	if err := g.Check(some(t)[1]); err == nil {
		t.Error("closed guides check")
	}
}

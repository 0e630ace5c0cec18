package guide

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The most words of a text, beside trying all ways to cut it.
func TestMostWords(t *testing.T) {
	words := []string{"a", "ab", "abc", "bc", "cab", "bb"}
	word := func(s string) bool { return slices.Contains(words, s) }
	var brute func(s string) int
	brute = func(s string) int {
		best := -1
		if s == "" {
			return 0
		}
		for _, w := range words {
			if rest, ok := strings.CutPrefix(s, w); ok {
				if n := brute(rest); n >= 0 {
					best = max(best, n+1)
				}
			}
		}
		return best
	}
	rng := seeded(4)
	for range 2000 {
		var b strings.Builder
		for range 1 + rng.IntN(9) {
			b.WriteByte("abc"[rng.IntN(3)])
		}
		if have, want := mostWords(b.String(), word), max(0, brute(b.String())); have != want {
			t.Fatalf("%s: %d words, want %d", b.String(), have, want)
		}
	}
}

// The choices of a spec are those that it was made of.
func TestChoicesAreRead(t *testing.T) {
	for _, list := range [][]string{{"a"}, {"yes", "no"}, {`a" | "b`, "\\", "\n\u2028é<>&"}, {strings.Repeat("long ", 300), "x"}} {
		s, err := NewChoice(list)
		if err != nil || !slices.Equal(s.choices(), list) {
			t.Errorf("%q: %q, %v", list, s.choices(), err)
		}
	}
	for _, s := range []Spec{{Lark, "a|b"}, {Regex, "a|b?"}, {Regex, `a\d`}, {Regex, `a\`}, {Regex, "(a)"}} {
		if list := s.choices(); list != nil {
			t.Errorf("%v: %q", s, list)
		}
	}
}

// What is impossible is said before a response begins, and what is possible is not refused.
func TestPossible(t *testing.T) {
	g, tok := newGuides(t, Options{Boxes: 1})
	choice, _ := NewChoice([]string{"yes", "no"})
	regex := Spec{Regex, "[a-c]{3}"}
	object := NewObject(Whitespace{})
	ids := func(text string) (list []int32) {
		for _, c := range strings.Split(text, "") {
			list = append(list, tok.Encode(nil, c)...)
		}
		return list
	}
	no := slices.Concat(ids("no"), tok.Encode(nil, "no"), demoEnds[:1])
	for i, c := range []struct {
		spec     Spec
		thinking bool
		limits   Limits
		want     string // of the error; "": none
	}{
		{choice, false, Limits{Max: 9}, ""},
		{choice, false, Limits{Min: 4, Max: 9}, "no choice has more than 3 tokens"},
		{choice, false, Limits{Min: 3, Max: 9}, ""},
		{choice, true, Limits{Min: 400, Max: 900}, ""},
		{choice, false, Limits{Allowed: ids("xz"), Max: 9}, "no choice can be written"},
		{choice, false, Limits{Allowed: no, Max: 9}, ""},
		{choice, false, Limits{Allowed: no, Min: 3, Max: 9}, "no choice has more than 2 tokens"},
		{choice, false, Limits{Allowed: ids("no"), Max: 9}, "no end token is left"},
		{choice, false, Limits{Allowed: ids("no"), Max: 2}, ""},
		{choice, false, Limits{Never: slices.Concat(ids("ye"), no, tok.Encode(nil, "yes")), Max: 9}, "no choice"},
		{regex, false, Limits{Allowed: ids("xyz"), Max: 9}, "none of the tokens"},
		{regex, false, Limits{Allowed: ids("xyc"), Max: 9}, ""},
		{regex, true, Limits{Allowed: ids("xyz"), Max: 9}, "none of the tokens"},
		{Spec{Regex, "a?"}, false, Limits{Min: 1, Never: ids("a"), Max: 9}, "none of the tokens"},
		{Spec{Regex, "a?"}, true, Limits{Min: 1, Never: ids("a"), Max: 9}, ""},
		{Spec{Regex, "a?"}, false, Limits{Never: ids("a"), Max: 9}, ""},
		{Spec{Regex, "a?"}, false, Limits{Min: 1, Held: ids("a"), Max: 9}, "none of the tokens"},
		{Spec{Regex, "a|"}, false, Limits{Allowed: demoEnds[:1], Max: 9}, ""},
		{Spec{Regex, "|a"}, false, Limits{Never: ids("a"), Max: 9}, ""},
		{Spec{Regex, "a|"}, false, Limits{Allowed: demoEnds[:1], Min: 1, Max: 9}, "none of the tokens"},
		{object, false, Limits{Allowed: []int32{-1, 1 << 30}, Max: 9}, "none of the tokens"},
		{object, false, Limits{Never: []int32{-1, 1 << 30}, Max: 9}, ""},
	} {
		err := g.Possible(c.spec, c.thinking, c.limits)
		if (err == nil) != (c.want == "") || !strings.Contains(fmt.Sprint(err), c.want) && err != nil {
			t.Errorf("%d: %v, want %q", i, err, c.want)
		}
	}
}

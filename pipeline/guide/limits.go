package guide

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Limits are what the other parameters of a response leave to its grammar. The zero value:
// all.
type Limits struct {
	Allowed []int32 // no other token is chosen; nil: any
	Never   []int32 // are not chosen
	Min     int     // before so many tokens the response does not end
	Held    []int32 // tokens that are not chosen before then, besides the end tokens
	Max     int     // the response is cut behind so many tokens
}

// Possible reports why a response cannot be one of the spec, as far as that can be known
// before it begins; nil: it may be. Thinking: tokens come in front of the grammar's.
func (g *Guides) Possible(s Spec, thinking bool, l Limits) error {
	keep := l.tokens(g.vocab.tokens)
	if choices := s.choices(); choices != nil && !thinking {
		return g.spelled(choices, keep, l)
	}
	if !thinking && l.Min > 0 {
		for _, id := range slices.Concat(g.vocab.ends, l.Held) {
			drop(keep, id)
		}
	}
	first, err := g.first(s)
	if err != nil {
		return nil // that is another error
	}
	for i := range first {
		if first[i]&keep[i] != 0 {
			return nil
		}
	}
	return errors.New("none of the tokens that it may begin with is left")
}

// tokens are those that may be chosen at all.
func (l *Limits) tokens(n int) []uint64 {
	keep := make([]uint64, (n+63)/64)
	if l.Allowed == nil {
		for i := range keep {
			keep[i] = ^uint64(0)
		}
	}
	for _, id := range l.Allowed {
		if id >= 0 && int(id) < n {
			keep[id/64] |= 1 << (id % 64)
		}
	}
	for _, id := range l.Never {
		drop(keep, id)
	}
	return keep
}

func drop(set []uint64, id int32) {
	if id >= 0 && int(id/64) < len(set) {
		set[id/64] &^= 1 << (id % 64)
	}
}

func has(set []uint64, id int32) bool { return set[id/64]>>(id%64)&1 == 1 }

// first is the set of tokens that a spec's text may begin with.
func (g *Guides) first(s Spec) ([]uint64, error) {
	w, done := g.judge, make(chan error, 1)
	m := g.Start(s, false)
	w.do(func() {
		done <- m.next(w, nil)
		m.drop(w)
	})
	if err := w.result(done); err != nil {
		return nil, err
	}
	return m.sets[0], nil
}

// mostSpelled bounds the bytes of choices that are looked at.
const mostSpelled = 1 << 16

// spelled looks at how many tokens the choices can have.
func (g *Guides) spelled(choices []string, keep []uint64, l Limits) error {
	bytes := 0
	for _, c := range choices {
		if bytes += len(c); bytes > mostSpelled {
			return nil
		}
	}
	words := g.words()
	longest := 0
	for _, c := range choices {
		longest = max(longest, mostWords(c, func(word string) bool {
			return slices.ContainsFunc(words[word], func(id int32) bool { return has(keep, id) })
		}))
	}
	ends := slices.ContainsFunc(g.vocab.ends, func(id int32) bool { return has(keep, id) })
	switch {
	case longest == 0:
		return errors.New("no choice can be written with the tokens that are left")
	case longest < l.Min:
		return fmt.Errorf("no choice has more than %d tokens", longest)
	case !ends && longest < l.Max:
		return fmt.Errorf("no end token is left, and no choice has more than %d tokens", longest)
	}
	return nil
}

// mostWords is how many words a text can be made of; 0: of none.
func mostWords(text string, word func(string) bool) int {
	n := make([]int, len(text)+1) // of the words behind a place, and one more; 0: there are none
	n[len(text)] = 1
	for from := len(text) - 1; from >= 0; from-- {
		for to := from + 1; to <= min(len(text), from+mostWord); to++ {
			if n[to] >= n[from] && n[to] > 0 && word(text[from:to]) {
				n[from] = n[to] + 1
			}
		}
	}
	return max(0, n[0]-1)
}

// mostWord is more bytes than tokens of texts have.
const mostWord = 256

// words are the tokens of each text, without those that are added.
func (g *Guides) words() map[string][]int32 {
	g.spelling.Do(func() {
		g.spell = map[string][]int32{}
		added := g.tokens.AddedIDs()
		for id := range int32(g.vocab.tokens) {
			text := g.tokens.Bytes(id)
			if _, ok := added[id]; !ok && text != "" && len(text) <= mostWord {
				g.spell[text] = append(g.spell[text], id)
			}
		}
	})
	return g.spell
}

// choices are those of a spec that is a list of texts; nil: it is another one, or a text of it
// is empty, and has no tokens to count.
func (s Spec) choices() (list []string) {
	if s.Kind != Regex {
		return nil
	}
	text := []byte{}
	for i := 0; i < len(s.Text); i++ {
		c := s.Text[i]
		switch {
		case c == '|':
			list, text = append(list, string(text)), text[:0]
			continue
		case c == '\\' && i+1 < len(s.Text) && strings.IndexByte(marks, s.Text[i+1]) >= 0:
			i++
			c = s.Text[i]
		case strings.IndexByte(marks, c) >= 0:
			return nil
		}
		text = append(text, c)
	}
	if list = append(list, string(text)); slices.Contains(list, "") {
		return nil
	}
	return list
}

// marks are what expressions have meanings for.
const marks = `\.+*?()|[]{}^$`

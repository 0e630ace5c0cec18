package chat

import (
	"slices"
	"strings"

	"glmbatch/pipeline/chat/jinja"
)

// The marks around tokens that are to stay text: private-use characters, which
// are taken out of what users wrote before.
const (
	markStart = '\U000F0000'
	markEnd   = '\U000F0001'
)

// Guard marks control tokens in what users wrote.
type Guard struct {
	mark   *strings.Replacer
	tokens map[string]bool
}

// NewGuard makes one for a tokenizer's added tokens: the special ones, and those
// that the template writes itself.
func (t *Template) NewGuard(special, others []string) *Guard {
	own := strings.Join(t.main.Literals(), "\x00")
	if t.tools != nil {
		own += "\x00" + strings.Join(t.tools.Literals(), "\x00")
	}
	tokens := slices.Clone(special)
	for _, token := range others {
		if strings.Contains(own, token) {
			tokens = append(tokens, token)
		}
	}
	// A Replacer takes the first that fits at a place, so longer ones come first.
	slices.SortStableFunc(tokens, func(a, b string) int { return len(b) - len(a) })
	pairs := []string{string(markStart), "", string(markEnd), ""}
	g := &Guard{tokens: map[string]bool{}}
	for _, token := range tokens {
		if token != "" && !g.tokens[token] {
			g.tokens[token] = true
			pairs = append(pairs, token, string(markStart)+token+string(markEnd))
		}
	}
	g.mark = strings.NewReplacer(pairs...)
	return g
}

// markAll marks the strings in v, in place where they are in something.
func (g *Guard) markAll(v any) any {
	if g == nil {
		return v
	}
	switch v := v.(type) {
	case string:
		return g.mark.Replace(v)
	case *jinja.List:
		if v == nil {
			return v
		}
		for i, x := range v.Items {
			v.Items[i] = g.markAll(x)
		}
	case *jinja.Dict:
		for i := range v.Len() {
			k, x := v.At(i)
			if s, ok := k.(string); ok {
				v.Set(s, g.markAll(x))
			}
		}
	}
	return v
}

// Piece is a part of a prompt.
type Piece struct {
	Text  string
	Plain bool // tokens in it are text
}

// Pieces cuts a prompt at the marks. A template's own methods may have torn
// a pair of marks apart: a lone one still parts the text.
func (g *Guard) Pieces(text string) []Piece {
	var out []Piece
	add := func(s string, plain bool) {
		if s != "" {
			out = append(out, Piece{s, plain})
		}
	}
	for {
		at := strings.IndexAny(text, string(markStart)+string(markEnd))
		if at < 0 {
			add(text, false)
			return out
		}
		add(text[:at], false)
		mark := text[at : at+len(string(markStart))]
		text = text[at+len(mark):]
		if mark == string(markStart) {
			next := strings.IndexAny(text, string(markStart)+string(markEnd))
			if next >= 0 && strings.HasPrefix(text[next:], string(markEnd)) && g.tokens[text[:next]] {
				add(text[:next], true)
				text = text[next+len(string(markEnd)):]
			}
		}
	}
}

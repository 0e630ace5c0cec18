package tokenizer

import (
	"unicode"
	"unicode/utf8"
)

// addedToken is one entry of added_tokens.
type addedToken struct {
	ID         int64  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
}

// matcher finds added tokens in text: the leftmost, and of those the longest.
// It is a trie; the zero matcher finds nothing.
type matcher struct {
	first  [256]bool // the bytes that tokens start with
	nodes  []node    // the first is the root
	tokens []addedToken
}

type node struct {
	edges []edge
	token int32 // index in tokens of the one that ends here; -1: none
}

type edge struct {
	b  byte
	to int32
}

func (n *node) child(b byte) int32 {
	for _, e := range n.edges {
		if e.b == b {
			return e.to
		}
	}
	return -1
}

// add makes a token known under pattern, its content after normalization. A
// pattern that is there already keeps its first token.
func (m *matcher) add(pattern string, token addedToken) {
	if m.nodes == nil {
		m.nodes = []node{{token: -1}}
	}
	m.first[pattern[0]] = true
	at := int32(0)
	for i := range len(pattern) {
		to := m.nodes[at].child(pattern[i])
		if to < 0 {
			to = int32(len(m.nodes))
			m.nodes = append(m.nodes, node{token: -1})
			m.nodes[at].edges = append(m.nodes[at].edges, edge{pattern[i], to})
		}
		at = to
	}
	if m.nodes[at].token < 0 {
		m.nodes[at].token = int32(len(m.tokens))
		m.tokens = append(m.tokens, token)
	}
}

// find returns the first match in s at or after from; token < 0: none.
func (m *matcher) find(s string, from int) (start, end int, token int32) {
	if m.nodes == nil {
		return 0, 0, -1
	}
	for i := from; i < len(s); i++ {
		if !m.first[s[i]] {
			continue
		}
		token, at := int32(-1), int32(0)
		for j := i; j < len(s); j++ {
			if at = m.nodes[at].child(s[j]); at < 0 {
				break
			}
			if k := m.nodes[at].token; k >= 0 {
				end, token = j+1, k
			}
		}
		if token >= 0 {
			return i, end, token
		}
	}
	return 0, 0, -1
}

// cursor is how far a text has been searched and how far it has been given out.
// They differ after a token that takes the space behind it.
type cursor struct{ searched, given int }

// next returns the text before the next token and the token's id; at the end
// the rest of the text and -1.
func (m *matcher) next(s string, c *cursor) (before string, id int32) {
	for {
		start, end, i := m.find(s, c.searched)
		if i < 0 {
			before, c.given = s[c.given:], len(s)
			return before, -1
		}
		c.searched = end
		token := &m.tokens[i]
		if token.SingleWord && (endsWithWord(s[:start]) || startsWithWord(s[end:])) {
			continue
		}
		if token.LStrip {
			start = max(spaceBefore(s, start), c.given)
		}
		if token.RStrip {
			end = spaceAfter(s, end)
		}
		if c.given < start {
			before = s[c.given:start]
		}
		c.given = end
		return before, int32(token.ID)
	}
}

func isSpace(r rune) bool { return unicode.Is(unicode.White_Space, r) }

// spaceBefore returns where the white space that ends at i starts.
func spaceBefore(s string, i int) int {
	for i > 0 {
		r, n := utf8.DecodeLastRuneInString(s[:i])
		if !isSpace(r) {
			break
		}
		i -= n
	}
	return i
}

// spaceAfter returns where the white space that starts at i ends.
func spaceAfter(s string, i int) int {
	for i < len(s) {
		r, n := utf8.DecodeRuneInString(s[i:])
		if !isSpace(r) {
			break
		}
		i += n
	}
	return i
}

func startsWithWord(s string) bool {
	r, n := utf8.DecodeRuneInString(s)
	return n > 0 && isWord(r, n)
}

func endsWithWord(s string) bool {
	r, n := utf8.DecodeLastRuneInString(s)
	return n > 0 && isWord(r, n)
}

// isWord tells whether a regular expression's \w matches r, whose encoding has
// n bytes: Unicode's alphabetic characters, marks, digits and connectors.
func isWord(r rune, n int) bool {
	if r == utf8.RuneError && n == 1 {
		return false
	}
	return unicode.In(r, unicode.L, unicode.M, unicode.Nl, unicode.Nd, unicode.Pc, unicode.Other_Alphabetic,
		unicode.Join_Control, newLetters)
}

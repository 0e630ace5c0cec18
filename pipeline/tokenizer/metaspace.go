package tokenizer

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// metaspace puts a visible character in the place of each space, and before the text,
// and cuts the text before each.
type metaspace struct {
	mark  string
	first bool // only before what the text begins with
	never bool // not before a text
	split bool
}

func newMetaspace(p *part) (*metaspace, error) {
	m := &metaspace{mark: p.Replacement, split: p.Split == nil || *p.Split}
	if m.mark == "" {
		m.mark = "▁"
	}
	if utf8.RuneCountInString(m.mark) != 1 {
		return nil, fmt.Errorf("the replacement %q is not one character", m.mark)
	}
	switch p.PrependScheme {
	case "", "always":
		m.never = p.PrependScheme == "" && p.AddPrefixSpace != nil && !*p.AddPrefixSpace // as older files say it
	case "first":
		m.first = true
	case "never":
		m.never = true
	default:
		return nil, fmt.Errorf("prepend_scheme %q is not always, first or never", p.PrependScheme)
	}
	return m, nil
}

// cut gives the pieces of s to emit; first: the text begins with s.
func (m *metaspace) cut(s string, first bool, emit func(piece string)) {
	s = strings.ReplaceAll(s, " ", m.mark)
	if !m.never && (!m.first || first) && !strings.HasPrefix(s, m.mark) {
		s = m.mark + s
	}
	for m.split && s != "" {
		n := strings.Index(s[1:], m.mark)
		if n < 0 {
			break
		}
		emit(s[:n+1])
		s = s[n+1:]
	}
	emit(s)
}

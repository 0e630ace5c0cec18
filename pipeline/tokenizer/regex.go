package tokenizer

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
)

// Patterns that no scanner knows run in a backtracking engine. Its time is bounded
// twice: a pattern with a repetition in a repetition, which may take exponential
// time, is refused, and a text that takes longer than patternTime, and patternByte for
// each of its bytes, has no tokens. Both are times of a processor, not of a clock on the
// wall: a machine that is busy, or was suspended, refuses no text that it would take else.
const (
	maxPatternBytes = 1 << 14
	patternTime     = 20 * time.Second
	patternByte     = 100 * time.Microsecond
)

var started = time.Now()

// ErrPattern is returned for a text that a pre-tokenizer's pattern does not get
// through in time.
var ErrPattern = errors.New("the tokenizer's pattern takes too long for this text")

// pattern is a Split of a pre-tokenizer.
type pattern struct {
	re     *regexp2.Regexp
	source string
	is     func(c rune) bool // instead of both
	join   behavior
	invert bool // what does not match counts as what does
}

// newPattern makes the Split of one behavior.
func newPattern(source, name string, invert bool) (*pattern, error) {
	join, err := behaviorOf(name)
	if err != nil {
		return nil, err
	}
	p := &pattern{source: source, join: join, invert: invert}
	if len(source) > maxPatternBytes {
		return nil, fmt.Errorf("a pattern of %d bytes, more than %d", len(source), maxPatternBytes)
	}
	if nested(source) {
		return nil, fmt.Errorf("the pattern %.200s repeats what repeats: some texts would take it for ever", source)
	}
	if c := foreign(source); c != "" {
		return nil, fmt.Errorf("the pattern %.200s: %s is not supported", source, c)
	}
	if p.re, err = compiled(source, patternTime); err != nil {
		return nil, err
	}
	return p, nil
}

// foreign returns what the engine takes for something else than the library; "":
// there is nothing such.
func foreign(source string) string {
	for i := 0; i+1 < len(source); i++ {
		if source[i] == '\\' {
			if i++; strings.IndexByte("wWbBhHRXKG", source[i]) >= 0 {
				return source[i-1 : i+1]
			}
		}
	}
	return ""
}

// nested tells whether a group with a repetition in it is itself repeated.
func nested(source string) bool {
	repeats := func(i int) (n int, yes bool) { // the repetition at i, and whether it is one of many
		switch {
		case i >= len(source):
			return 0, false
		case source[i] == '*' || source[i] == '+':
			return 1, true
		case source[i] == '?':
			return 1, false
		case source[i] == '{':
			if end := strings.IndexByte(source[i:], '}'); end > 0 &&
				strings.Trim(source[i+1:i+end], "0123456789,") == "" {
				return end + 1, true
			}
		}
		return 0, false
	}
	inside := []bool{false} // for each open group: a repetition was in it
	for i := 0; i < len(source); i++ {
		switch source[i] {
		case '\\':
			i++
			if i+1 < len(source) && (source[i] == 'p' || source[i] == 'P' || source[i] == 'x' || source[i] == 'u') &&
				source[i+1] == '{' {
				i += max(0, strings.IndexByte(source[i:], '}'))
			}
		case '[':
			for i++; i < len(source) && source[i] != ']'; i++ {
				if source[i] == '\\' {
					i++
				}
			}
		case '(':
			inside = append(inside, false)
			if i+1 < len(source) && source[i+1] == '?' {
				i++ // of (?:
			}
			continue
		case ')':
			if len(inside) == 1 {
				return true // not balanced: the engine's error would be better, but it is one
			}
			had := inside[len(inside)-1]
			inside = inside[:len(inside)-1]
			if _, many := repeats(i + 1); many && had {
				return true
			}
			inside[len(inside)-1] = inside[len(inside)-1] || had
		}
		if n, many := repeats(i + 1); n > 0 && source[i] != '|' {
			inside[len(inside)-1] = inside[len(inside)-1] || many
		}
	}
	return false
}

// The engine's classes are of the Unicode version of Go, the library's of a newer
// one: characters that are new stand as old ones of their kind, of scripts that no
// pattern names. A comparison with the library has every code point.
var newKinds = []struct {
	table *unicode.RangeTable
	like  rune
}{
	{newLetters, 0x10a10},
	{newNumbers, 0x104a0},
	{newClassMarks, 0x10a01},
	{newPoints, 0x1091f},
	{newSymbols, 0x10877},
}

func asKnown(c rune) rune {
	if c < 0x897 { // the first of them
		return c
	}
	for _, k := range newKinds {
		if unicode.Is(k.table, c) {
			return k.like
		}
	}
	return c
}

var newClassMarks = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x897, Hi: 0x897, Stride: 1},
	},
	R32: []unicode.Range32{
		{Lo: 0x10d69, Hi: 0x10d6d, Stride: 1}, {Lo: 0x10efc, Hi: 0x10efc, Stride: 1}, {Lo: 0x113b8, Hi: 0x113c0,
			Stride: 1},
		{Lo: 0x113c2, Hi: 0x113c2, Stride: 1}, {Lo: 0x113c5, Hi: 0x113c5, Stride: 1}, {Lo: 0x113c7, Hi: 0x113ca,
			Stride: 1},
		{Lo: 0x113cc, Hi: 0x113d0, Stride: 1}, {Lo: 0x113d2, Hi: 0x113d2, Stride: 1}, {Lo: 0x113e1, Hi: 0x113e2,
			Stride: 1},
		{Lo: 0x11f5a, Hi: 0x11f5a, Stride: 1}, {Lo: 0x1611e, Hi: 0x1612f, Stride: 1}, {Lo: 0x1e5ee, Hi: 0x1e5ef,
			Stride: 1},
	},
}

var newPoints = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x1b4e, Hi: 0x1b4f, Stride: 1}, {Lo: 0x1b7f, Hi: 0x1b7f, Stride: 1},
	},
	R32: []unicode.Range32{
		{Lo: 0x10d6e, Hi: 0x10d6e, Stride: 1}, {Lo: 0x113d4, Hi: 0x113d5, Stride: 1}, {Lo: 0x113d7, Hi: 0x113d8,
			Stride: 1},
		{Lo: 0x11be1, Hi: 0x11be1, Stride: 1}, {Lo: 0x16d6d, Hi: 0x16d6f, Stride: 1}, {Lo: 0x1e5ff, Hi: 0x1e5ff,
			Stride: 1},
	},
}

var newSymbols = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x2427, Hi: 0x2429, Stride: 1}, {Lo: 0x2ffc, Hi: 0x2fff, Stride: 1}, {Lo: 0x31e4, Hi: 0x31e5, Stride: 1},
		{Lo: 0x31ef, Hi: 0x31ef, Stride: 1},
	},
	R32: []unicode.Range32{
		{Lo: 0x10d8e, Hi: 0x10d8f, Stride: 1}, {Lo: 0x1cc00, Hi: 0x1ccef, Stride: 1}, {Lo: 0x1cd00, Hi: 0x1ceb3,
			Stride: 1},
		{Lo: 0x1f8b2, Hi: 0x1f8bb, Stride: 1}, {Lo: 0x1f8c0, Hi: 0x1f8c1, Stride: 1}, {Lo: 0x1fa89, Hi: 0x1fa89,
			Stride: 1},
		{Lo: 0x1fa8f, Hi: 0x1fa8f, Stride: 1}, {Lo: 0x1fabe, Hi: 0x1fabe, Stride: 1}, {Lo: 0x1fac6, Hi: 0x1fac6,
			Stride: 1},
		{Lo: 0x1fadc, Hi: 0x1fadc, Stride: 1}, {Lo: 0x1fadf, Hi: 0x1fadf, Stride: 1}, {Lo: 0x1fae9, Hi: 0x1fae9,
			Stride: 1},
		{Lo: 0x1fbcb, Hi: 0x1fbef, Stride: 1},
	},
}

// cut gives the pieces of s to emit.
func (p *pattern) cut(s string, emit func(piece string)) error {
	runes := make([]rune, 0, len(s))
	for rest := s; rest != ""; {
		c, n := utf8.DecodeRuneInString(rest) // a byte that is not UTF-8 counts as U+FFFD
		if p.is == nil {
			c = asKnown(c)
		}
		runes, rest = append(runes, c), rest[n:]
	}
	parts, err := p.match(runes)
	if err != nil {
		return err
	}
	at := 0 // in runes
	for _, part := range p.join(parts) {
		n := 0
		for ; at < part.to; at++ {
			_, size := utf8.DecodeRuneInString(s[n:])
			n += size
		}
		if !part.match {
			emit(s[:n])
		}
		s = s[n:]
	}
	return nil
}

// match cuts runes into what matches and what does not, none of them empty.
func (p *pattern) match(runes []rune) ([]split, error) {
	if p.is != nil {
		parts := make([]split, len(runes))
		for i, c := range runes {
			parts[i] = split{i + 1, p.is(c)}
		}
		return joined(parts), nil
	}
	var parts []split
	err := patiently(patternTime+time.Duration(len(runes))*patternByte, threadTime,
		func(clock time.Duration) (err error) {
			re := p.re
			if clock > re.MatchTimeout {
				if re, err = compiled(p.source, clock); err != nil {
					return err
				}
			}
			parts = parts[:0]
			add := func(to int, match bool) {
				if n := len(parts); n == 0 && to > 0 || n > 0 && to > parts[n-1].to {
					parts = append(parts, split{to, match != p.invert})
				}
			}
			err = re.FindRunesMatches(runes, -1, func(v regexp2.MatchView) bool {
				if from, n, _ := v.GroupRange(0); n > 0 {
					add(from, false)
					add(from+n, true)
				}
				return true
			})
			add(len(runes), false)
			return err
		})
	return parts, err
}

// maxClock bounds what a search may take by the clock on the wall.
const maxClock = time.Hour

// patiently calls search, which ends with an error when the clock on the wall says so,
// until it ends without or has had its limit of a processor.
func patiently(limit time.Duration, spent func() time.Duration, search func(clock time.Duration) error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for clock := patternTime; clock < maxClock; clock *= 2 {
		start := spent()
		if err := search(clock); err == nil {
			return nil
		}
		if spent()-start >= limit {
			break
		}
	}
	return ErrPattern
}

func compiled(source string, limit time.Duration) (*regexp2.Regexp, error) {
	re, err := regexp2.Compile(source)
	if err != nil {
		return nil, fmt.Errorf("the pattern %.200s: %w", source, err)
	}
	re.MatchTimeout = limit
	return re, nil
}

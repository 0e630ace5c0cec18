package chat

import (
	"fmt"
	"strings"
	"unicode"
)

// segment is a piece of a template: text, {{ output }} or {% statement %}.
type segment struct {
	kind segmentKind
	text string // literal text with white space control done, or what is between the marks
	line int
}

type segmentKind int

const (
	text segmentKind = iota
	output
	statement
)

// scan splits a template as Jinja2's lexer does with trim_blocks and
// lstrip_blocks, the settings of transformers. Comments are gone, raw blocks are
// text, and a single line end at the end of the template is dropped.
func scan(source string) ([]segment, error) {
	source = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(source)
	source = strings.TrimSuffix(source, "\n")
	var segments []segment
	at, lineStart := 0, true // lineStart: what comes next is at the start of a line
	for at < len(source) {
		open := nextTag(source[at:])
		if open < 0 {
			segments = append(segments, segment{text, source[at:], lineOf(source, at)})
			break
		}
		open += at
		line := lineOf(source, open)
		kind, sign := source[open+1], byte(0)
		body := open + 2
		if body < len(source) && (source[body] == '-' || source[body] == '+') {
			sign = source[body]
			body++
		}
		if before := trimBefore(source[at:open], kind, sign, lineStart); before != "" {
			segments = append(segments, segment{text, before, line})
		}
		end, after, err := closeTag(source, body, kind)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		inside := strings.TrimSpace(source[body:end])
		if kind == '%' && inside == "raw" {
			rawEnd, next, ok := endRaw(source, after)
			if !ok {
				return nil, fmt.Errorf("line %d: raw block without end", line)
			}
			segments = append(segments, segment{text, rawEnd, line})
			after = next
		} else if kind != '#' {
			segments = append(segments, segment{map[byte]segmentKind{'{': output, '%': statement}[kind], inside, line})
		}
		lineStart = source[after-1] == '\n'
		at = after
	}
	return segments, nil
}

func lineOf(source string, at int) int { return 1 + strings.Count(source[:at], "\n") }

// nextTag returns where the next {{, {% or {# is, or -1.
func nextTag(s string) int {
	for from := 0; ; {
		i := strings.IndexByte(s[from:], '{')
		if i < 0 || from+i+1 >= len(s) {
			return -1
		}
		i += from
		if c := s[i+1]; c == '{' || c == '%' || c == '#' {
			return i
		}
		from = i + 1
	}
}

// trimBefore is the white space control on the left of a tag.
func trimBefore(before string, kind, sign byte, lineStart bool) string {
	if sign == '-' {
		return strings.TrimRightFunc(before, unicode.IsSpace)
	}
	if kind == '{' || sign == '+' {
		return before
	}
	start := strings.LastIndexByte(before, '\n') + 1
	if (start > 0 || lineStart) && strings.TrimSpace(before[start:]) == "" {
		return before[:start]
	}
	return before
}

// closeTag returns where the inside of a tag ends and where the text after it
// starts, with the white space control on its right done.
func closeTag(s string, i int, kind byte) (end, after int, err error) {
	closer := map[byte]string{'{': "}}", '%': "%}", '#': "#}"}[kind]
	depth := 0
	for ; i < len(s); i++ {
		rest := s[i:]
		sign := byte(0)
		if (rest[0] == '-' || rest[0] == '+' && kind != '{') && strings.HasPrefix(rest[1:], closer) {
			sign, rest = rest[0], rest[1:]
		}
		if strings.HasPrefix(rest, closer) && (depth == 0 || kind == '#') {
			after = len(s) - len(rest) + 2
			switch {
			case sign == '-':
				after = len(s) - len(strings.TrimLeftFunc(s[after:], unicode.IsSpace))
			case kind != '{' && sign != '+' && strings.HasPrefix(s[after:], "\n"):
				after++
			}
			return i, after, nil
		}
		if kind == '#' {
			continue
		}
		switch s[i] {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth--
		case '\'', '"':
			n := stringEnd(s[i:])
			if n < 0 {
				return 0, 0, fmt.Errorf("string without end")
			}
			i += n - 1
		}
	}
	return 0, 0, fmt.Errorf("{%c without %s", kind, closer)
}

// stringEnd returns the length of the string literal that s starts with, or -1.
func stringEnd(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case s[0]:
			return i + 1
		}
	}
	return -1
}

// endRaw returns the text of a raw block whose inside starts at i, and where the
// text after it starts.
func endRaw(s string, i int) (inside string, after int, ok bool) {
	for at := i; ; {
		open := strings.Index(s[at:], "{%")
		if open < 0 {
			return "", 0, false
		}
		open += at
		body := open + 2
		sign := byte(0)
		if body < len(s) && (s[body] == '-' || s[body] == '+') {
			sign = s[body]
			body++
		}
		if end, next, err := closeTag(s, body, '%'); err == nil && strings.TrimSpace(s[body:end]) == "endraw" {
			return trimBefore(s[i:open], '%', sign, s[i-1] == '\n'), next, true
		}
		at = open + 2
	}
}

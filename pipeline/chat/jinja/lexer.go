package jinja

import (
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

type kind uint8

const (
	tokEOF kind = iota
	tokData
	tokVariable    // {{
	tokVariableEnd // }}
	tokBlock       // {%
	tokBlockEnd    // %}
	tokName
	tokString
	tokNumber
	tokOperator
)

// token is a piece of a template. text is a name, an operator or the text itself.
type token struct {
	kind  kind
	text  string
	value any // of a number
	line  int
}

// lexer cuts a template into tokens, as Jinja2's does with trim_blocks and
// lstrip_blocks: the line end after a block and the space before one go.
type lexer struct {
	src    string
	pos    int
	line   int
	tokens []token
}

var (
	newlines  = strings.NewReplacer("\r\n", "\n", "\r", "\n")
	rawBegin  = regexp.MustCompile(`^\{%([-+]?)[\s\x1c-\x1f]*raw[\s\x1c-\x1f]*(-?)%\}`)
	rawEnd    = regexp.MustCompile(`\{%([-+]?)\s*endraw\s*([-+]?)%\}`)
	floatText = regexp.MustCompile(`^(?:\d+_)*\d+(?:(?:\.(?:\d+_)*\d+)?[eE][+-]?(?:\d+_)*\d+|\.(?:\d+_)*\d+)`)
	intText   = regexp.MustCompile(
		`^(?:0[bB](?:_?[01])+|0[oO](?:_?[0-7])+|0[xX](?:_?[0-9a-fA-F])+|[1-9](?:_?\d)*|0(?:_?0)*)`)
	operators = []string{"//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}",
		">", "<", "=", ".", ":", "|", ",", ";"}
	closing = map[string]string{"(": ")", "[": "]", "{": "}"}
)

func lex(source string) []token {
	source = newlines.Replace(source)
	l := &lexer{src: strings.TrimSuffix(source, "\n"), line: 1}
	for l.pos < len(l.src) {
		l.text()
	}
	l.add(token{kind: tokEOF})
	return l.tokens
}

func (l *lexer) add(t token) {
	t.line = l.line
	l.tokens = append(l.tokens, t)
}

func (l *lexer) fail(format string, args ...any) {
	defer func() {
		e := recover().(*Error)
		e.Line = l.line
		panic(e)
	}()
	fail(format, args...)
}

// advance moves on by n bytes and counts their lines.
func (l *lexer) advance(n int) {
	l.line += strings.Count(l.src[l.pos:l.pos+n], "\n")
	l.pos += n
}

// text reads the text up to the next tag, and the tag.
func (l *lexer) text() {
	rest := l.src[l.pos:]
	at := 0
	for ; ; at++ {
		i := strings.IndexByte(rest[at:], '{')
		if i < 0 || at+i+1 >= len(rest) {
			l.add(token{kind: tokData, text: rest})
			l.advance(len(rest))
			return
		}
		at += i
		if c := rest[at+1]; c == '{' || c == '%' || c == '#' {
			break
		}
	}
	text, tag := rest[:at], rest[at:at+2]
	size, sign := 2, byte(0)
	if len(rest) > at+2 && (rest[at+2] == '-' || rest[at+2] == '+') {
		sign = rest[at+2]
		size++
	}
	var raw []string
	if end := strings.Index(rest[at:], "%}"); tag == "{%" && end >= 0 {
		raw = rawBegin.FindStringSubmatch(rest[at : at+end+2])
	}
	if text = l.strip(text, sign, tag != "{{"); text != "" {
		l.add(token{kind: tokData, text: text})
	}
	switch {
	case raw != nil:
		l.advance(at + len(raw[0]))
		if raw[2] == "-" {
			l.skipSpace()
		}
		l.raw()
	case tag == "{#":
		l.advance(at + size)
		l.comment()
	case tag == "{{":
		l.advance(at + size)
		l.add(token{kind: tokVariable})
		l.tag("}}", tokVariableEnd)
	default:
		l.advance(at + size)
		l.add(token{kind: tokBlock})
		l.tag("%}", tokBlockEnd)
	}
}

// strip removes the space at the end of text that the tag after it takes away.
func (l *lexer) strip(text string, sign byte, block bool) string {
	switch {
	case sign == '-':
		return strings.TrimRightFunc(text, isSpace)
	case sign == '+' || !block:
		return text
	}
	from := strings.LastIndexByte(text, '\n') + 1
	if (from > 0 || l.pos == 0 || l.src[l.pos-1] == '\n') && strings.TrimLeftFunc(text[from:], isSpace) == "" {
		return text[:from]
	}
	return text
}

func (l *lexer) skipSpace() {
	rest := l.src[l.pos:]
	l.advance(len(rest) - len(strings.TrimLeftFunc(rest, isSpace)))
}

// closeTag moves past what ends a tag, of n bytes, and the space that it takes.
func (l *lexer) closeTag(n int, sign byte, trim bool) {
	l.advance(n)
	switch {
	case sign == '-':
		l.skipSpace()
	case trim && sign != '+' && strings.HasPrefix(l.src[l.pos:], "\n"):
		l.advance(1)
	}
}

func (l *lexer) raw() {
	m := rawEnd.FindStringSubmatchIndex(l.src[l.pos:])
	if m == nil {
		l.fail("Missing end of raw directive")
	}
	rest := l.src[l.pos:]
	if text := l.strip(rest[:m[0]], signAt(rest, m[2], m[3]), true); text != "" {
		l.add(token{kind: tokData, text: text})
	}
	l.closeTag(m[1], signAt(rest, m[4], m[5]), true)
}

func signAt(s string, from, to int) byte {
	if from == to {
		return 0
	}
	return s[from]
}

func (l *lexer) comment() {
	i := strings.Index(l.src[l.pos:], "#}")
	if i < 0 {
		l.fail("Missing end of comment tag")
	}
	sign := byte(0)
	if i > 0 && strings.IndexByte("+-", l.src[l.pos+i-1]) >= 0 {
		sign = l.src[l.pos+i-1]
	}
	l.closeTag(i+2, sign, true)
}

// tag reads the tokens of an expression or statement up to end.
func (l *lexer) tag(end string, endKind kind) {
	var open []string // the brackets that wait for these
	for {
		l.skipSpace()
		rest := l.src[l.pos:]
		if rest == "" {
			l.fail("unexpected end of template, expected %q", end)
		}
		if len(open) == 0 {
			sign := byte(0)
			if (rest[0] == '-' || rest[0] == '+' && endKind == tokBlockEnd) && strings.HasPrefix(rest[1:], end) {
				sign = rest[0]
			}
			if sign != 0 || strings.HasPrefix(rest, end) {
				l.add(token{kind: endKind})
				n := len(end)
				if sign != 0 {
					n++
				}
				l.closeTag(n, sign, endKind == tokBlockEnd)
				return
			}
		}
		switch r, _ := utf8.DecodeRuneInString(rest); {
		case '0' <= r && r <= '9':
			l.number(rest)
		case isWord(r):
			n := strings.IndexFunc(rest, func(r rune) bool { return !isWord(r) })
			if n < 0 {
				n = len(rest)
			}
			if unicode.Is(unicode.Mn, r) || unicode.IsNumber(r) {
				l.fail("Invalid character in identifier")
			}
			l.add(token{kind: tokName, text: rest[:n]})
			l.advance(n)
		case r == '\'' || r == '"':
			l.string(rest)
		default:
			open = l.operator(rest, open)
		}
	}
}

func (l *lexer) operator(rest string, open []string) []string {
	for _, op := range operators {
		if !strings.HasPrefix(rest, op) {
			continue
		}
		if want := closing[op]; want != "" {
			open = append(open, want)
		} else if op == ")" || op == "]" || op == "}" {
			if len(open) == 0 {
				l.fail("unexpected %q", op)
			}
			if want := open[len(open)-1]; want != op {
				l.fail("unexpected %q, expected %q", op, want)
			}
			open = open[:len(open)-1]
		}
		l.add(token{kind: tokOperator, text: op})
		l.advance(len(op))
		return open
	}
	r, _ := utf8.DecodeRuneInString(rest)
	l.fail("unexpected char %q", r)
	return nil
}

// numberText is the start of s that may belong to a number.
func numberText(s string) string {
	for i := range len(s) {
		c := s[i]
		exponent := i > 0 && (c == '+' || c == '-') && s[i-1]|0x20 == 'e'
		if !exponent && c != '.' && c != '_' && !('0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z') {
			return s[:i]
		}
	}
	return s
}

func (l *lexer) number(rest string) {
	rest = numberText(rest)
	afterDot := l.pos > 0 && l.src[l.pos-1] == '.' // x.1.2 are two indices
	if m := floatText.FindString(rest); m != "" && !afterDot {
		f, _ := strconv.ParseFloat(strings.ReplaceAll(m, "_", ""), 64) // infinite if too large, as in Python
		l.add(token{kind: tokNumber, text: m, value: f})
		l.advance(len(m))
		return
	}
	m := intText.FindString(rest)
	if len(m) > maxIntBits/4 {
		l.fail("an integer of %d digits", len(m))
	}
	i, ok := new(big.Int).SetString(strings.ReplaceAll(m, "_", ""), 0)
	if !ok {
		l.fail("not a number: %.20s", rest)
	}
	l.add(token{kind: tokNumber, text: m, value: normalInt(i)})
	l.advance(len(m))
}

func (l *lexer) string(rest string) {
	for i := 1; i < len(rest); i++ {
		switch rest[i] {
		case '\\':
			i++
		case rest[0]:
			l.add(token{kind: tokString, text: l.unescape(rest[1:i])})
			l.advance(i + 1)
			return
		}
	}
	l.fail("a string without its end")
}

// escapes are those of Python that stand for one character.
var escapes = map[byte]string{'\n': "", '\\': "\\", '\'': "'", '"': "\"", 'a': "\a", 'b': "\b", 'f': "\f", 'n': "\n",
	'r': "\r", 't': "\t", 'v': "\v"}

// unescape resolves the escapes of a string literal.
func (l *lexer) unescape(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		digits, base := 0, 16
		switch c := s[i]; {
		case c == 'x':
			digits = 2
		case c == 'u':
			digits = 4
		case c == 'U':
			digits = 8
		case '0' <= c && c <= '7':
			base = 8
			for digits < 3 && i+digits < len(s) && '0' <= s[i+digits] && s[i+digits] <= '7' {
				digits++
			}
			i--
		case c == 'N':
			l.fail("characters by name (\\N) are not supported in strings")
		default:
			if text, ok := escapes[c]; ok {
				b.WriteString(text)
			} else {
				b.WriteString(s[i-1 : i+1])
			}
			continue
		}
		if i+digits >= len(s) {
			l.fail("truncated escape in a string")
		}
		n, err := strconv.ParseUint(s[i+1:i+1+digits], base, 32)
		if err != nil || n > unicode.MaxRune {
			l.fail("a wrong escape in a string: \\%s", s[i:i+1+digits])
		}
		b.WriteRune(rune(n)) // half of a surrogate pair becomes U+FFFD
		i += digits
	}
	return b.String()
}

// isSpace is Python's str.isspace of one character.
func isSpace(r rune) bool { return unicode.IsSpace(r) || 0x1c <= r && r <= 0x1f }

// isWord is \w of Python's re: what str.isalnum has, and the underscore.
func isWord(r rune) bool {
	return r == '_' || r < utf8.RuneSelf && ('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9') ||
		r >= utf8.RuneSelf && r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsNumber(r))
}

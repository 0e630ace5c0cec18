package guide

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// fromEBNF writes a grammar of llama.cpp's and XGrammar's EBNF (GBNF) as Lark's:
//
//	root ::= "yes" | word{1,3}   # comments
//	word ::= [a-z]+ ","?
func fromEBNF(text string) (string, error) {
	e := &ebnf{text: text, rules: map[string]int{}}
	for e.space(true); e.at < len(e.text); e.space(true) {
		if err := e.rule(); err != nil {
			return "", fmt.Errorf("the grammar's line %d: %w", 1+strings.Count(text[:min(e.at, len(text))], "\n"), err)
		}
	}
	if _, ok := e.rules["root"]; !ok {
		return "", fmt.Errorf("the grammar has no rule root")
	}
	for name := range e.rules {
		if !e.made[name] {
			return "", fmt.Errorf("the grammar has no rule %s", name)
		}
	}
	return "start: " + e.name("root") + "\n" + e.out.String(), nil
}

// ebnf reads a grammar and writes it as it goes.
type ebnf struct {
	text  string
	at    int
	rules map[string]int // every name that came up, numbered
	made  map[string]bool
	out   strings.Builder
	depth int
}

// space skips white space and comments; without lines, those of one line.
func (e *ebnf) space(lines bool) {
	for e.at < len(e.text) {
		switch c := e.text[e.at]; {
		case c == ' ', c == '\t', c == '\r', c == '\n' && lines:
			e.at++
		case c == '#':
			for e.at < len(e.text) && e.text[e.at] != '\n' {
				e.at++
			}
		default:
			return
		}
	}
}

func isName(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

func (e *ebnf) word() string {
	from := e.at
	for e.at < len(e.text) && isName(e.text[e.at]) {
		e.at++
	}
	return e.text[from:e.at]
}

// name is a rule's in Lark.
func (e *ebnf) name(of string) string {
	n, ok := e.rules[of]
	if !ok {
		n = len(e.rules)
		e.rules[of] = n
	}
	return "r" + strconv.Itoa(n)
}

func (e *ebnf) rule() error {
	name := e.word()
	e.space(false)
	if name == "" || !strings.HasPrefix(e.text[e.at:], "::=") {
		return fmt.Errorf("a rule is not NAME ::= and what it stands for")
	}
	e.at += len("::=")
	if e.made == nil {
		e.made = map[string]bool{}
	}
	if e.made[name] {
		return fmt.Errorf("the rule %s is there twice", name)
	}
	e.made[name] = true
	e.out.WriteString(e.name(name) + ": ")
	if err := e.choices(); err != nil {
		return err
	}
	e.out.WriteByte('\n')
	return nil
}

// ahead reports whether a rule begins here.
func (e *ebnf) ahead() bool {
	at := e.at
	defer func() { e.at = at }()
	name := e.word()
	e.space(false)
	return name != "" && strings.HasPrefix(e.text[e.at:], "::=")
}

// choices reads alternatives, up to the next rule or a closing bracket.
func (e *ebnf) choices() error {
	if e.depth++; e.depth > deepest {
		return fmt.Errorf("groups are more than %d deep", deepest)
	}
	defer func() { e.depth-- }()
	parts := 0
	for {
		e.space(true)
		switch {
		case e.at >= len(e.text), e.text[e.at] == ')', e.ahead():
			if parts == 0 {
				e.out.WriteString(`""`)
			}
			return nil
		case e.text[e.at] == '|':
			e.at++
			if parts == 0 {
				e.out.WriteString(`""`)
			}
			e.out.WriteString(" | ")
			parts = 0
			continue
		}
		if parts > 0 {
			e.out.WriteByte(' ')
		}
		if err := e.item(); err != nil {
			return err
		}
		if err := e.times(); err != nil {
			return err
		}
		parts++
	}
}

func (e *ebnf) item() error {
	switch c := e.text[e.at]; {
	case c == '"':
		return e.literal()
	case c == '[':
		return e.class()
	case c == '.':
		e.at++
		e.out.WriteString(`/(?s:.)/`)
	case c == '(':
		e.at++
		e.out.WriteByte('(')
		if err := e.choices(); err != nil {
			return err
		}
		if e.at >= len(e.text) {
			return fmt.Errorf("a group has no end")
		}
		e.at++
		e.out.WriteByte(')')
	case isName(c):
		e.out.WriteString(e.name(e.word()))
	default:
		return fmt.Errorf("%q is not expected", c)
	}
	return nil
}

// times reads how often an item comes.
func (e *ebnf) times() error {
	if e.at >= len(e.text) {
		return nil
	}
	switch c := e.text[e.at]; c {
	case '*', '+', '?':
		e.at++
		e.out.WriteByte(c)
	case '{':
		end := strings.IndexByte(e.text[e.at:], '}')
		if end < 0 {
			return fmt.Errorf("a { has no }")
		}
		low, high, comma := strings.Cut(e.text[e.at+1:e.at+end], ",")
		low, high = strings.TrimSpace(low), strings.TrimSpace(high)
		e.at += end + 1
		from, err := strconv.ParseUint(low, 10, 16)
		to := from
		if err == nil && high != "" {
			to, err = strconv.ParseUint(high, 10, 16)
		}
		if err != nil || to < from {
			return fmt.Errorf("{%s,%s} is no number of times", low, high)
		}
		if comma && high == "" {
			fmt.Fprintf(&e.out, "{%d,}", from)
		} else {
			fmt.Fprintf(&e.out, "{%d,%d}", from, to)
		}
	}
	return nil
}

// character reads one of a literal or a class, escaped or not.
func (e *ebnf) character() (rune, error) {
	r, n := utf8.DecodeRuneInString(e.text[e.at:])
	if r == utf8.RuneError && n <= 1 {
		return 0, fmt.Errorf("the text ends, or is not valid UTF-8")
	}
	e.at += n
	if r != '\\' {
		return r, nil
	}
	if e.at >= len(e.text) {
		return 0, fmt.Errorf("an escape has no end")
	}
	c := e.text[e.at]
	e.at++
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
	switch {
	case digits > 0:
		if e.at+digits > len(e.text) {
			return 0, fmt.Errorf("an escape has no end")
		}
		v, err := strconv.ParseUint(e.text[e.at:e.at+digits], 16, 32)
		if err != nil || !utf8.ValidRune(rune(v)) {
			return 0, fmt.Errorf("\\%c%s is no character", c, e.text[e.at:e.at+digits])
		}
		e.at += digits
		return rune(v), nil
	case c == 'n':
		return '\n', nil
	case c == 'r':
		return '\r', nil
	case c == 't':
		return '\t', nil
	case strings.IndexByte(`"\[]-^'/`, c) >= 0:
		return rune(c), nil
	}
	return 0, fmt.Errorf("\\%c is no escape", c)
}

func (e *ebnf) literal() error {
	e.at++
	var b strings.Builder
	for {
		if e.at >= len(e.text) || e.text[e.at] == '\n' {
			return fmt.Errorf("a literal has no end")
		}
		if e.text[e.at] == '"' {
			e.at++
			break
		}
		r, err := e.character()
		if err != nil {
			return err
		}
		b.WriteRune(r)
	}
	e.out.WriteString(quote(b.String()))
	return nil
}

// class reads a class of characters, and writes it as an expression.
func (e *ebnf) class() error {
	e.at++
	e.out.WriteString("/[")
	if e.at < len(e.text) && e.text[e.at] == '^' {
		e.at++
		e.out.WriteByte('^')
	}
	for n := 0; ; n++ {
		if e.at >= len(e.text) || e.text[e.at] == '\n' {
			return fmt.Errorf("a class has no end")
		}
		if e.text[e.at] == ']' && n > 0 {
			e.at++
			break
		}
		low, err := e.character()
		if err != nil {
			return err
		}
		fmt.Fprintf(&e.out, `\x{%X}`, low)
		if e.at+1 < len(e.text) && e.text[e.at] == '-' && e.text[e.at+1] != ']' {
			e.at++
			high, err := e.character()
			if err != nil {
				return err
			}
			if high < low {
				return fmt.Errorf("%c-%c is no range", low, high)
			}
			fmt.Fprintf(&e.out, `-\x{%X}`, high)
		}
	}
	e.out.WriteString("]/")
	return nil
}

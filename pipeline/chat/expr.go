package chat

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// token is one token of an expression.
type token struct {
	kind tokenKind
	text string // as written; of a string literal, what it means
}

type tokenKind int

const (
	tokenEnd tokenKind = iota
	tokenName
	tokenNumber
	tokenString
	tokenOp // operators and brackets
)

// operators, the longer ones first.
var operators = []string{"**", "//", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "<", ">", "=", "~", "|", ".", ",", ":", "(", ")", "[", "]", "{", "}"}

func isNameByte(b byte) bool {
	return b == '_' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9'
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }

// tokenize cuts an expression or a statement into tokens.
func tokenize(s string) ([]token, error) {
	var tokens []token
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			i++
		case isDigit(c):
			n := numberLen(s[i:])
			tokens = append(tokens, token{tokenNumber, s[i : i+n]})
			i += n
		case isNameByte(c):
			n := i
			for n < len(s) && isNameByte(s[n]) {
				n++
			}
			tokens = append(tokens, token{tokenName, s[i:n]})
			i = n
		case c == '"' || c == '\'':
			n := stringEnd(s[i:])
			if n < 0 {
				return nil, errors.New("string without end")
			}
			tokens = append(tokens, token{tokenString, unescape(s[i+1 : i+n-1])})
			i += n
		default:
			k := slices.IndexFunc(operators, func(op string) bool { return strings.HasPrefix(s[i:], op) })
			if k < 0 {
				return nil, fmt.Errorf("unexpected %.4q", s[i:])
			}
			tokens = append(tokens, token{tokenOp, operators[k]})
			i += len(operators[k])
		}
	}
	return tokens, nil
}

// numberLen returns the length of the number that s starts with: digits, then
// a fraction and an exponent if they are there.
func numberLen(s string) int {
	digits := func(i int) int {
		for i < len(s) && (isDigit(s[i]) || s[i] == '_') {
			i++
		}
		return i
	}
	n := digits(0)
	if n+1 < len(s) && s[n] == '.' && isDigit(s[n+1]) {
		n = digits(n + 1)
	}
	if n < len(s) && (s[n] == 'e' || s[n] == 'E') {
		k := n + 1
		if k < len(s) && (s[k] == '+' || s[k] == '-') {
			k++
		}
		if k < len(s) && isDigit(s[k]) {
			n = digits(k)
		}
	}
	return n
}

// unescape resolves Python's escapes in the inside of a string literal.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	simple := map[byte]string{'\n': "", '\\': `\`, '\'': "'", '"': `"`, 'a': "\a", 'b': "\b", 'f': "\f", 'n': "\n", 'r': "\r", 't': "\t", 'v': "\v"}
	hex := map[byte]int{'x': 2, 'u': 4, 'U': 8}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		if t, ok := simple[s[i]]; ok {
			b.WriteString(t)
			continue
		}
		if n, ok := hex[s[i]]; ok && i+n < len(s) {
			if v, err := strconv.ParseUint(s[i+1:i+1+n], 16, 32); err == nil {
				b.WriteString(string(rune(v)))
				i += n
				continue
			}
		}
		if s[i] >= '0' && s[i] <= '7' {
			n := i + 1
			for n < len(s) && n < i+3 && s[n] >= '0' && s[n] <= '7' {
				n++
			}
			v, _ := strconv.ParseUint(s[i:n], 8, 32)
			b.WriteString(string(rune(v)))
			i = n - 1
			continue
		}
		b.WriteByte('\\')
		b.WriteByte(s[i])
	}
	return b.String()
}

// quote writes a string literal of the library, which knows fewer escapes.
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// exprRewriter writes an expression anew, token by token: filters, tests and
// methods of strings become this package's where it has its own.
type exprRewriter struct {
	tokens []token
	at     int
	depth  int
	rename map[string]string // variables to be written otherwise
	used   func(builtin string)

	literals bool // there are lists or mappings in it
}

// maxExprDepth bounds the nesting of brackets, and with it the recursion of
// this parser and the library's.
const maxExprDepth = 100

func (e *exprRewriter) peek() token {
	if e.at < len(e.tokens) {
		return e.tokens[e.at]
	}
	return token{}
}

func (e *exprRewriter) isOp(op string) bool {
	t := e.peek()
	return t.kind == tokenOp && t.text == op
}

func (e *exprRewriter) isName(names ...string) bool {
	t := e.peek()
	return t.kind == tokenName && slices.Contains(names, t.text)
}

// all rewrites the whole of an expression.
func (e *exprRewriter) all() (string, error) {
	code, err := e.until("")
	if err == nil && e.at < len(e.tokens) {
		err = fmt.Errorf("unexpected %q", e.peek().text)
	}
	if err == nil && code == "" {
		err = errors.New("an expression is missing")
	}
	return code, err
}

// until rewrites operands and what is between them up to a closing bracket.
func (e *exprRewriter) until(closer string) (string, error) {
	e.depth++
	defer func() { e.depth-- }()
	if e.depth > maxExprDepth {
		return "", fmt.Errorf("nested more than %d deep", maxExprDepth)
	}
	var parts []string
	divided := false
	value := false // the last part is an operand
	for e.at < len(e.tokens) {
		t := e.peek()
		switch {
		case t.kind == tokenOp && (t.text == ")" || t.text == "]" || t.text == "}"):
			if t.text != closer {
				return "", fmt.Errorf("unexpected %q", t.text)
			}
			return strings.Join(parts, " "), nil
		case t.kind == tokenOp && t.text == "*" && value:
			if divided {
				return "", errors.New(`"*" after a division: put one of them in parentheses`)
			}
			e.at++
			right, err := e.operand()
			if err != nil {
				return "", err
			}
			parts[len(parts)-1] += e.call("times") + "(" + right + ")"
		case t.kind == tokenOp && t.text == "|" || t.kind == tokenOp && t.text == ".":
			return "", fmt.Errorf("unexpected %q", t.text)
		case t.kind == tokenOp && brackets[t.text] == "" && (value || t.text != "-" && t.text != "+"),
			e.isName("and", "or", "not", "in", "if", "else"):
			divided = t.text == "/" || t.text == "//" || t.text == "%"
			value = false
			parts = append(parts, t.text)
			e.at++
		default:
			code, err := e.operand()
			if err != nil {
				return "", err
			}
			parts = append(parts, code)
			value = true
		}
	}
	if closer != "" {
		return "", fmt.Errorf("%q is missing", closer)
	}
	return strings.Join(parts, " "), nil
}

// call is the filter that stands for a builtin.
func (e *exprRewriter) call(builtin string) string {
	e.used(builtinPrefix + builtin)
	return "|" + builtinPrefix + builtin
}

// operand rewrites a value with the attributes, calls, filters and tests that
// follow it.
func (e *exprRewriter) operand() (string, error) {
	sign := ""
	for e.isOp("-") || e.isOp("+") {
		sign += e.peek().text + " "
		e.at++
	}
	code, err := e.primary()
	if err != nil {
		return "", err
	}
	for err == nil {
		if sign != "" && (e.isOp("|") || e.isName("is")) { // the sign belongs to their operand
			code, sign = "("+sign+code+")", ""
		}
		switch {
		case e.isOp("."):
			code, err = e.attribute(code)
		case e.isOp("["), e.isOp("("):
			var group string
			group, err = e.group()
			code += group
		case e.isOp("|"):
			code, err = e.filter(code)
		case e.isName("is"):
			code, err = e.test(code)
		default:
			return sign + code, nil
		}
	}
	return "", err
}

var brackets = map[string]string{"(": ")", "[": "]", "{": "}"}

// group rewrites brackets and what is in them.
func (e *exprRewriter) group() (string, error) {
	open := e.peek().text
	e.at++
	inside, err := e.until(brackets[open])
	if err != nil {
		return "", err
	}
	e.at++
	return open + " " + inside + " " + brackets[open], nil
}

func (e *exprRewriter) primary() (string, error) {
	t := e.peek()
	switch {
	case t.kind == tokenOp && brackets[t.text] != "":
		e.literals = true
		return e.group()
	case t.kind == tokenString:
		e.at++
		for e.peek().kind == tokenString { // literals side by side are one
			t.text += e.peek().text
			e.at++
		}
		return quote(t.text), nil
	case t.kind == tokenNumber:
		e.at++
		digits := strings.ReplaceAll(t.text, "_", "")
		if !strings.ContainsAny(digits, ".eE") {
			if _, err := strconv.ParseInt(digits, 10, 64); err != nil {
				return "", fmt.Errorf("number %.30q is too large", digits)
			}
			return digits, nil
		}
		f, err := strconv.ParseFloat(digits, 64)
		if err != nil {
			return "", fmt.Errorf("number %.30q is too large", digits)
		}
		if s := strconv.FormatFloat(f, 'f', -1, 64); strings.Contains(s, ".") {
			return s, nil
		} else {
			return s + ".0", nil
		}
	case t.kind == tokenName:
		if strings.HasPrefix(t.text, builtinPrefix) {
			return "", fmt.Errorf("name %q is reserved", t.text)
		}
		e.at++
		if slices.Contains(overridden, t.text) {
			e.used(t.text)
		}
		if code, ok := e.rename[t.text]; ok && !e.isOp("=") {
			return code, nil
		}
		return t.text, nil
	}
	if t.kind == tokenEnd {
		return "", errors.New("the expression ends too early")
	}
	return "", fmt.Errorf("unexpected %q", t.text)
}

// attribute rewrites .name, and .name( where name is a method of strings.
func (e *exprRewriter) attribute(code string) (string, error) {
	e.at++
	t := e.peek()
	if t.kind != tokenName && t.kind != tokenNumber {
		return "", fmt.Errorf(`unexpected %q after "."`, t.text)
	}
	e.at++
	if isDigit(t.text[0]) {
		return code + "[" + t.text + "]", nil
	}
	if e.isOp("(") && builtins[builtinPrefix+"method_"+t.text] != nil {
		return code + e.call("method_"+t.text), nil
	}
	return code + "." + t.text, nil
}

// filter rewrites |name; its arguments are left to operand.
func (e *exprRewriter) filter(code string) (string, error) {
	e.at++
	t := e.peek()
	if t.kind != tokenName {
		return "", fmt.Errorf(`unexpected %q after "|"`, t.text)
	}
	e.at++
	name := "|" + t.text
	if builtins[builtinPrefix+"filter_"+t.text] != nil {
		name = e.call("filter_" + t.text)
	} else if !slices.Contains(libraryFilters, t.text) {
		return "", fmt.Errorf("filter %q is not known", t.text)
	}
	if e.isOp("(") {
		group, err := e.group()
		return code + name + group, err
	}
	return code + name, nil
}

// test rewrites "is name", "is not name" and their argument, with parentheses
// or without, as a filter.
func (e *exprRewriter) test(code string) (string, error) {
	e.at++
	kind := "is_"
	if e.isName("not") {
		e.at++
		kind = "isnot_"
	}
	t := e.peek()
	if t.kind != tokenName || tests[t.text] == nil {
		return "", fmt.Errorf("test %q is not known", t.text)
	}
	e.at++
	code += e.call(kind + t.text)
	switch next := e.peek(); {
	case e.isOp("("):
		group, err := e.group()
		return code + group, err
	case next.kind == tokenString, next.kind == tokenNumber, e.isOp("["), e.isOp("{"),
		next.kind == tokenName && !e.isName("and", "or", "not", "in", "is", "if", "else"):
		arg, err := e.primary()
		if err != nil {
			return "", err
		}
		for e.isOp(".") || e.isOp("[") || e.isOp("(") {
			if e.isOp(".") {
				arg, err = e.attribute(arg)
			} else {
				var group string
				group, err = e.group()
				arg += group
			}
			if err != nil {
				return "", err
			}
		}
		return code + "(" + arg + ")", nil
	}
	return code, nil
}

// validName tells whether s can be a variable.
func validName(t token) bool {
	return t.kind == tokenName && !isDigit(t.text[0]) && utf8.ValidString(t.text) && !strings.HasPrefix(t.text, builtinPrefix) && !slices.Contains(overridden, t.text)
}

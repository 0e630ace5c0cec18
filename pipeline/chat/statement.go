package chat

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// statements says how each statement is rewritten, given the index of its
// segment and the tokens after its first word.
var statements = map[string]func(w *rewriter, i int, rest []token) error{
	"if":         (*rewriter).ifStatement,
	"elif":       (*rewriter).elifStatement,
	"else":       (*rewriter).elseStatement,
	"for":        (*rewriter).forStatement,
	"set":        (*rewriter).setStatement,
	"macro":      (*rewriter).macroStatement,
	"call":       (*rewriter).callStatement,
	"filter":     (*rewriter).filterStatement,
	"generation": (*rewriter).generationStatement,
	"break":      (*rewriter).breakStatement,
	"continue":   (*rewriter).continueStatement,
}

func (w *rewriter) open(b block) {
	w.blocks = append(w.blocks, b)
	if b.turns {
		w.inside++
	}
}

// end closes the innermost block.
func (w *rewriter) end(word string) error {
	n := len(w.blocks) - 1
	if n < 0 || w.blocks[n].end != word {
		return fmt.Errorf("%q closes nothing", word)
	}
	b := w.blocks[n]
	w.blocks = w.blocks[:n]
	if b.turns {
		w.inside--
	}
	w.write(b.close)
	if !b.silent {
		w.write("{% ", word, " %}")
	}
	w.write(b.after)
	return nil
}

// name makes a variable of the rewriter's own.
func (w *rewriter) name() string {
	w.serial++
	return builtinPrefix + "v" + strconv.Itoa(w.serial)
}

func (w *rewriter) ifStatement(_ int, rest []token) error {
	code, err := w.exprTokens(rest, nil)
	if err != nil {
		return err
	}
	w.write("{% if (", code, ") %}")
	w.open(block{end: "endif"})
	return nil
}

func (w *rewriter) elifStatement(_ int, rest []token) error {
	code, err := w.exprTokens(rest, nil)
	if err != nil {
		return err
	}
	if n := len(w.blocks); n == 0 || w.blocks[n-1].end != "endif" {
		return errors.New(`"elif" without "if"`)
	}
	w.write("{% elif (", code, ") %}")
	return nil
}

func (w *rewriter) elseStatement(_ int, rest []token) error {
	if n := len(w.blocks); n == 0 || w.blocks[n-1].end != "endif" && w.blocks[n-1].end != "endfor" {
		return errors.New(`"else" without "if" or "for"`)
	}
	w.write("{% else %}")
	return nil
}

// forStatement rewrites a loop. Each turn starts with the outer values of the
// variables that the body sets; loops over messages note the message.
func (w *rewriter) forStatement(i int, rest []token) error {
	targets, rest, err := loopTargets(rest)
	if err != nil {
		return err
	}
	if n := len(rest); n > 0 && rest[n-1].kind == tokenName && rest[n-1].text == "recursive" {
		return errors.New(`"recursive" is not supported`)
	}
	var condition []token
	hasCondition := false
	if k := topLevel(rest, tokenName, "if"); k >= 0 {
		rest, condition, hasCondition = rest[:k], rest[k+1:], true
	}
	iter, err := w.exprTokens(rest, nil)
	if err != nil {
		return err
	}
	body, head, rename := "", strings.Join(targets, ", "), map[string]string(nil)
	each := w.filter("each") + "(" + strconv.Itoa(len(targets)) + ")"
	if len(targets) > 2 || len(targets) == 2 && hasCondition {
		// The library unpacks two variables, and none in conditions.
		item := w.name()
		head, rename = item, make(map[string]string)
		for k, target := range targets {
			rename[target] = item + "[" + strconv.Itoa(k) + "]"
			body += "{% set " + target + " = " + rename[target] + " %}"
		}
	}
	for _, name := range w.setInBody(i) {
		if !slices.Contains(targets, name) {
			outer := w.name()
			w.write("{% set ", outer, " = ", name, " %}")
			body += "{% set " + name + " = " + outer + " %}"
		}
	}
	b := block{end: "endfor", turns: true}
	if len(rest) == 1 && rest[0].text == "messages" && !hasCondition {
		at := w.name()
		body += "{% set " + at + " = loop.index0" + w.filter("at") + " %}"
		b.after = "{% set " + at + " = (-1)" + w.filter("at") + " %}"
	}
	w.write("{% for ", head, " in (", iter, ")", each)
	if hasCondition {
		code, err := w.exprTokens(condition, rename)
		if err != nil {
			return err
		}
		w.write(" if (", code, ")")
	}
	w.write(" %}", body)
	w.open(b)
	return nil
}

// loopTargets reads "a, b in" and returns what follows.
func loopTargets(tokens []token) (names []string, rest []token, err error) {
	k := topLevel(tokens, tokenName, "in")
	if k < 0 {
		return nil, nil, errors.New(`"for" without "in"`)
	}
	targets, rest := tokens[:k], tokens[k+1:]
	if n := len(targets); n > 2 && targets[0].text == "(" && targets[n-1].text == ")" {
		targets = targets[1 : n-1]
	}
	for i, t := range targets {
		if i%2 == 1 && t.text == "," && t.kind == tokenOp {
			continue
		}
		if i%2 == 1 || !validName(t) {
			return nil, nil, fmt.Errorf("%q cannot be a loop's variable", t.text)
		}
		names = append(names, t.text)
	}
	if len(names) == 0 {
		return nil, nil, errors.New("a loop without a variable")
	}
	return names, rest, nil
}

// topLevel returns the index of a token outside brackets, or -1.
func topLevel(tokens []token, kind tokenKind, text string) int {
	depth := 0
	for i, t := range tokens {
		if t.kind == tokenOp && brackets[t.text] != "" {
			depth++
		}
		if t.kind == tokenOp && (t.text == ")" || t.text == "]" || t.text == "}") {
			depth--
		}
		if depth == 0 && t.kind == kind && t.text == text {
			return i
		}
	}
	return -1
}

// setInBody returns the variables that the body of the loop at segment i sets
// itself, not in a loop or macro within.
func (w *rewriter) setInBody(i int) []string {
	names := make(map[string]bool)
	depth := 0
	for _, s := range w.segments[i+1:] {
		if s.kind != statement {
			continue
		}
		tokens, err := tokenize(s.text)
		if err != nil || len(tokens) == 0 {
			continue
		}
		switch tokens[0].text {
		case "for", "macro", "call":
			depth++
		case "endfor", "endmacro", "endcall":
			if depth == 0 {
				return slices.Sorted(maps.Keys(names))
			}
			depth--
		case "set":
			if depth == 0 && len(tokens) > 1 && validName(tokens[1]) && (len(tokens) == 2 || tokens[2].text == "=") {
				names[tokens[1].text] = true
			}
		}
	}
	return nil
}

func (w *rewriter) setStatement(_ int, rest []token) error {
	if len(rest) == 0 || !validName(rest[0]) {
		return errors.New(`"set" without a variable`)
	}
	target, into := rest[0].text, ""
	switch {
	case len(rest) == 1:
		w.write("{% set ", target, " %}")
		w.open(block{end: "endset"})
		return nil
	case rest[1].text == "=" && rest[1].kind == tokenOp:
		rest = rest[2:]
	case len(rest) > 3 && rest[1].text == "." && rest[2].kind == tokenName && rest[3].text == "=" && rest[3].kind == tokenOp:
		into = "(" + target + ")"
		target += "." + rest[2].text
		rest = rest[4:]
	default:
		return fmt.Errorf(`"set %s" is followed by %q; one variable, "=" and a value, or a block, are supported`, target, rest[1].text)
	}
	e := exprRewriter{tokens: rest, used: w.use}
	code, err := e.all()
	if err != nil {
		return err
	}
	check := "keep"
	if e.literals || into != "" {
		check = "nest"
	}
	w.write("{% set ", target, " = (", code, ")", w.filter(check), into, " %}")
	return nil
}

// macroStatement rewrites the head of a macro. Default values are kept in
// variables, because the library cuts them at any comma.
func (w *rewriter) macroStatement(_ int, rest []token) error {
	n := len(rest)
	if n < 3 || !validName(rest[0]) || rest[1].text != "(" || rest[n-1].text != ")" {
		return errors.New(`"macro" needs a name and a list of parameters`)
	}
	var params []string
	for list := rest[2 : n-1]; len(list) > 0; {
		end := topLevel(list, tokenOp, ",")
		param := list
		if list = nil; end >= 0 {
			list, param = param[end+1:], param[:end]
		}
		if len(param) == 0 || !validName(param[0]) {
			return errors.New("a macro's parameter is not a name")
		}
		code := param[0].text
		if len(param) > 1 {
			if param[1].text != "=" {
				return fmt.Errorf("macro: unexpected %q after %q", param[1].text, param[0].text)
			}
			value, err := w.exprTokens(param[2:], nil)
			if err != nil {
				return err
			}
			name := w.name()
			w.write("{% set ", name, " = (", value, ") %}")
			code += "=" + name
		}
		params = append(params, code)
	}
	w.write("{% macro ", rest[0].text, "(", strings.Join(params, ", "), ") %}{{ \"\"", w.filter("enter"), " }}")
	w.open(block{end: "endmacro", close: "{{ \"\"" + w.filter("leave") + " }}", turns: true})
	return nil
}

func (w *rewriter) callStatement(_ int, rest []token) error {
	head := ""
	if len(rest) > 0 && rest[0].text == "(" {
		end := 1
		for ; end < len(rest) && rest[end].text != ")"; end++ {
			if rest[end].text != "," && !validName(rest[end]) {
				return fmt.Errorf("call: %q cannot be a parameter", rest[end].text)
			}
			head += rest[end].text
		}
		if end == len(rest) {
			return errors.New(`call: ")" is missing`)
		}
		head, rest = "("+head+")", rest[end+1:]
	}
	code, err := w.exprTokens(rest, nil)
	if err != nil {
		return err
	}
	w.write("{% call", head, " ", code, " %}")
	w.open(block{end: "endcall", turns: true})
	return nil
}

// filterStatement makes a filter block a block of "set" and an output.
func (w *rewriter) filterStatement(_ int, rest []token) error {
	name := w.name()
	code, err := w.exprTokens(append([]token{{tokenName, "block"}, {tokenOp, "|"}}, rest...), map[string]string{"block": name})
	if err != nil {
		return err
	}
	w.write("{% set ", name, " %}")
	w.open(block{end: "endfilter", silent: true, close: "{% endset %}", after: "{{ (" + code + ")" + w.filter("print") + " }}"})
	return nil
}

// generationStatement drops the marks of what the assistant says; they matter
// in training only.
func (w *rewriter) generationStatement(int, []token) error {
	w.open(block{end: "endgeneration", silent: true})
	return nil
}

func (w *rewriter) breakStatement(int, []token) error    { return w.jump("break") }
func (w *rewriter) continueStatement(int, []token) error { return w.jump("continue") }

// jump rewrites break and continue, which must be in a loop, and in no macro
// within it.
func (w *rewriter) jump(word string) error {
	for i := len(w.blocks) - 1; i >= 0; i-- {
		switch w.blocks[i].end {
		case "endfor":
			w.write("{% ", word, " %}")
			return nil
		case "endmacro", "endcall":
			i = 0
		}
	}
	return fmt.Errorf("%q outside a loop", word)
}

package layout

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Eval is the value of an expression of constants as it would have in the file.
func (s *Source) Eval(expr string) (v int64, err error) {
	defer fault(&err)
	return scope{source: s}.eval(expr), nil
}

// problem is what an expression or a struct has that cannot be worked out.
type problem string

func (s scope) fail(format string, args ...any) {
	panic(problem(s.source.name + ": " + fmt.Sprintf(format, args...)))
}

// fault turns a problem into an error.
func fault(err *error) {
	switch p := recover().(type) {
	case nil:
	case problem:
		*err = fmt.Errorf("%s", string(p))
	default:
		panic(p)
	}
}

// scope is where a name stands: in a file, with parameters, in a struct or nil.
type scope struct {
	source *Source
	params map[string]int64
	within *structure
}

func (s scope) eval(expr string) int64 {
	e := expression{scope: s, tokens: tokens.FindAllString(expr, -1)}
	v := e.choice()
	if len(e.tokens) > 0 {
		s.fail("%q ends at %q", expr, e.tokens[0])
	}
	return v
}

// expression is what is left to read of one.
type expression struct {
	scope
	tokens []string
}

var tokens = regexp.MustCompile(`[A-Za-z_]\w*|\d[\w']*|<<|>>|<=|>=|==|!=|&&|\|\||::|\S`)

func (e *expression) peek() string {
	if len(e.tokens) == 0 {
		return ""
	}
	return e.tokens[0]
}

func (e *expression) next() string {
	t := e.peek()
	e.tokens = e.tokens[min(1, len(e.tokens)):]
	return t
}

func (e *expression) expect(want string) {
	if t := e.next(); t != want {
		e.fail("%q instead of %q", t, want)
	}
}

func (e *expression) choice() int64 {
	v := e.binary(0)
	if e.peek() != "?" {
		return v
	}
	e.next()
	a := e.choice()
	e.expect(":")
	b := e.choice()
	if v != 0 {
		return a
	}
	return b
}

// ranks are the operators, the loosest first.
var ranks = []string{" || ", " && ", " | ", " & ", " == != ", " < > <= >= ", " << >> ", " + - ", " * / % "}

const shifts = 6 // in ranks: what a template's arguments may have

func (e *expression) binary(rank int) int64 {
	if rank == len(ranks) {
		return e.single()
	}
	v := e.binary(rank + 1)
	for e.peek() != "" && strings.Contains(ranks[rank], " "+e.peek()+" ") {
		op := e.next()
		v = e.apply(op, v, e.binary(rank+1))
	}
	return v
}

func (e *expression) apply(op string, a, b int64) int64 {
	truth := func(is bool) int64 {
		if is {
			return 1
		}
		return 0
	}
	switch op {
	case "||":
		return truth(a != 0 || b != 0)
	case "&&":
		return truth(a != 0 && b != 0)
	case "|":
		return a | b
	case "&":
		return a & b
	case "==":
		return truth(a == b)
	case "!=":
		return truth(a != b)
	case "<":
		return truth(a < b)
	case ">":
		return truth(a > b)
	case "<=":
		return truth(a <= b)
	case ">=":
		return truth(a >= b)
	case "<<":
		return a << min(63, max(0, b))
	case ">>":
		return a >> min(63, max(0, b))
	case "+":
		return a + b
	case "-":
		return a - b
	case "*":
		return a * b
	}
	if b == 0 {
		e.fail("division by zero")
	}
	if op == "/" {
		return a / b
	}
	return a % b
}

func (e *expression) single() int64 {
	switch t := e.next(); {
	case t == "(":
		v := e.choice()
		e.expect(")")
		return v
	case t == "-":
		return -e.single()
	case t == "true":
		return 1
	case t == "false":
		return 0
	case t == "sizeof":
		e.expect("(")
		var name string
		for e.peek() != ")" && e.peek() != "" {
			name += e.next()
		}
		e.next()
		n, _ := e.sizeof(name)
		return n
	case t != "" && t[0] >= '0' && t[0] <= '9':
		v, err := strconv.ParseInt(strings.TrimRight(strings.ReplaceAll(t, "'", ""), "ulUL"), 0, 64)
		if err != nil {
			e.fail("%v", err)
		}
		return v
	default:
		return e.named(t)
	}
}

// named is the value of a parameter, of a constant of the struct around or of the
// file, or of a struct's, as Room<2>::first.
func (e *expression) named(name string) int64 {
	if v, ok := e.params[name]; ok {
		return v
	}
	if e.within != nil {
		if c := constants(e.within.body)[name]; len(c) == 1 {
			return e.scope.eval(c[0].expr)
		}
	}
	c, at := e.source.constant(name)
	switch len(c) {
	case 0:
		_, inner := e.structure(name)
		e.expect("::")
		return inner.eval(e.next())
	case 1:
		open, shut := "<", ">"
		if e.peek() == "(" {
			open, shut = "(", ")"
		}
		return scope{source: at, params: e.arguments(c[0].params, open, shut)}.eval(c[0].expr)
	}
	e.fail("%s has %s %d times", at.name, name, len(c))
	return 0
}

// structure is a struct and the scope inside of it, with the arguments that follow.
func (e *expression) structure(name string) (*structure, scope) {
	t, at := e.source.structure(name)
	if t == nil {
		e.fail("nothing is named %q", name)
	}
	return t, scope{source: at, params: e.arguments(t.params, "<", ">"), within: t}
}

// arguments reads as many as there are parameters.
func (e *expression) arguments(params []string, open, shut string) map[string]int64 {
	values := map[string]int64{}
	for i, p := range params {
		if i == 0 {
			e.expect(open)
		} else {
			e.expect(",")
		}
		values[p] = e.binary(shifts)
	}
	if len(params) > 0 {
		e.expect(shut)
	}
	return values
}

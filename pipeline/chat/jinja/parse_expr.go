package jinja

import (
	"fmt"
	"slices"
)

// tuple reads an expression, or several with commas between. Without a
// condition, "if" is not part of it.
func (p *parser) tuple(condition, parentheses bool) expr {
	var all []expr
	many := false
	for {
		if k := p.cur().kind; k == tokVariableEnd || k == tokBlockEnd || p.is(")") {
			break
		}
		all = append(all, p.expression(condition))
		if !p.skip(",") {
			break
		}
		many = true
	}
	switch {
	case many || len(all) == 0 && parentheses:
		return &tupleOf{all}
	case len(all) == 0:
		fail("an expression is missing, got %s", p.cur())
	}
	return all[0]
}

func (p *parser) expression(condition bool) expr {
	defer p.deeper()()
	if !condition {
		return p.or()
	}
	soft, known := p.soft, len(p.unknown)
	n := 0
	e := p.or()
	for p.skipName("if") {
		chain(&n)
		p.soft, p.unknown = true, p.unknown[:known]
		c := &conditional{yes: e, test: p.or()}
		if p.skipName("else") {
			c.no = p.expression(true)
		}
		p.soft = soft
		e = c
	}
	return e
}

func (p *parser) or() expr {
	e, n := p.and(), 0
	for p.skipName("or") {
		chain(&n)
		e = &logic{false, e, p.and()}
	}
	return e
}

func (p *parser) and() expr {
	e, n := p.not(), 0
	for p.skipName("and") {
		chain(&n)
		e = &logic{true, e, p.not()}
	}
	return e
}

func (p *parser) not() expr {
	if p.skipName("not") {
		defer p.deeper()()
		return &negation{p.not()}
	}
	return p.comparison()
}

var comparisons = []string{"==", "!=", "<", "<=", ">", ">="}

func (p *parser) comparison() expr {
	c := &comparison{first: p.sum()}
	for {
		t := p.cur()
		switch {
		case t.kind == tokOperator && slices.Contains(comparisons, t.text):
			p.next()
			c.ops = append(c.ops, t.text)
		case p.skipName("in"):
			c.ops = append(c.ops, "in")
		case p.isName("not") && p.tokens[p.at+1].kind == tokName && p.tokens[p.at+1].text == "in":
			p.at += 2
			c.ops = append(c.ops, "not in")
		case len(c.ops) == 0:
			return c.first
		default:
			return c
		}
		c.rest = append(c.rest, p.sum())
	}
}

// leftToRight reads operands with operators of one rank between them.
func (p *parser) leftToRight(operand func() expr, ops ...string) expr {
	e, n := operand(), 0
	for p.cur().kind == tokOperator && slices.Contains(ops, p.cur().text) {
		chain(&n)
		op := p.next().text
		e = &binary{op, e, operand()}
	}
	return e
}

func (p *parser) sum() expr     { return p.leftToRight(p.concat, "+", "-") }
func (p *parser) product() expr { return p.leftToRight(p.power, "*", "/", "//", "%") }
func (p *parser) power() expr {
	return p.leftToRight(func() expr { return p.unary(true) }, "**")
}

func (p *parser) concat() expr {
	all := []expr{p.product()}
	for p.skip("~") {
		all = append(all, p.product())
	}
	if len(all) == 1 {
		return all[0]
	}
	return &concat{all}
}

func (p *parser) unary(filters bool) expr {
	var e expr
	switch {
	case p.is("-") || p.is("+"):
		defer p.deeper()()
		minus := p.next().text == "-"
		e = &sign{minus, p.unary(false)}
	default:
		e = p.primary()
	}
	n := 0
	for p.is(".") || p.is("[") || p.is("(") {
		chain(&n)
		e = p.postfix(e)
	}
	for filters {
		chain(&n)
		switch {
		case p.is("|"):
			e = p.filter(e, false)
		case p.isName("is"):
			e = p.test(e)
		case p.is("("):
			e = p.postfix(e)
		default:
			return e
		}
	}
	return e
}

func (p *parser) primary() expr {
	t := p.next()
	switch t.kind {
	case tokName:
		switch t.text {
		case "true", "True":
			return &constant{true}
		case "false", "False":
			return &constant{false}
		case "none", "None":
			return &constant{nil}
		}
		p.uses[t.text]++
		return &variable{p.id(t.text), t.text}
	case tokNumber:
		return &constant{t.value}
	case tokString:
		s := t.text
		for p.cur().kind == tokString { // neighbours are one, as in Python
			s += p.next().text
		}
		return &constant{s}
	case tokOperator:
		switch t.text {
		case "(":
			e := p.tuple(true, true)
			p.expect(")")
			return e
		case "[":
			l := &listOf{}
			for !p.skip("]") {
				if len(l.items) > 0 {
					if p.expect(","); p.skip("]") {
						break
					}
				}
				l.items = append(l.items, p.expression(true))
			}
			return l
		case "{":
			d := &dictOf{}
			for !p.skip("}") {
				if len(d.keys) > 0 {
					if p.expect(","); p.skip("}") {
						break
					}
				}
				d.keys = append(d.keys, p.expression(true))
				p.expect(":")
				d.values = append(d.values, p.expression(true))
			}
			return d
		}
	}
	p.at-- // its line is the error's
	if t.kind == tokEOF {
		p.at++
	}
	fail("unexpected %s", t)
	return nil
}

func (p *parser) postfix(e expr) expr {
	t := p.next()
	switch t.text {
	case ".":
		a := p.next()
		switch _, isInt := a.value.(int); {
		case a.kind == tokName:
			return &attribute{e, a.text, t.line}
		case a.kind == tokNumber && isInt:
			return &item{e, &constant{a.value}, t.line}
		}
		fail("expected a name or number after \".\", got %s", a)
	case "[":
		var keys []expr
		for !p.skip("]") {
			if len(keys) > 0 {
				p.expect(",")
			}
			keys = append(keys, p.subscript())
		}
		if len(keys) == 1 {
			return &item{e, keys[0], t.line}
		}
		return &item{e, &tupleOf{keys}, t.line}
	}
	return &call{e, p.arguments(), t.line}
}

// subscript reads an index or a slice.
func (p *parser) subscript() expr {
	ends := func() bool { return p.is("]") || p.is(",") || p.is(":") }
	s := &sliced{}
	if !p.is(":") {
		e := p.expression(true)
		if !p.is(":") {
			return e
		}
		s.from = e
	}
	p.expect(":")
	if !ends() {
		s.to = p.expression(true)
	}
	if p.skip(":") && !ends() {
		s.step = p.expression(true)
	}
	return s
}

// arguments reads those of a call, after its parenthesis.
func (p *parser) arguments() arguments {
	var a arguments
	ensure := func(ok bool) {
		if !ok {
			fail("invalid order of arguments in a call")
		}
	}
	for first := true; !p.skip(")"); first = false {
		if !first {
			if p.expect(","); p.skip(")") {
				break
			}
		}
		switch {
		case p.skip("*"):
			ensure(a.star == nil && a.double == nil)
			a.star = p.expression(true)
		case p.skip("**"):
			ensure(a.double == nil)
			a.double = p.expression(true)
		case p.cur().kind == tokName && p.tokens[p.at+1].kind == tokOperator && p.tokens[p.at+1].text == "=":
			ensure(a.double == nil)
			name := p.next().text
			ensure(!slices.Contains(a.names, name))
			p.next()
			a.names = append(a.names, name)
			a.values = append(a.values, p.expression(true))
		default:
			ensure(a.star == nil && a.double == nil && len(a.names) == 0)
			a.args = append(a.args, p.expression(true))
		}
	}
	return a
}

// filter reads one or more filters of e. With inline, the first has no "|".
func (p *parser) filter(e expr, inline bool) expr {
	n := 0
	for inline || p.skip("|") {
		chain(&n)
		inline = false
		t := p.expectKind(tokName, "the name of a filter")
		f := &filtered{of: e, name: p.dotted(t.text), line: t.line}
		f.f = p.known(filters, "filter", f.name)
		if p.skip("(") {
			f.arguments = p.arguments()
		}
		e = f
	}
	return e
}

func (p *parser) dotted(name string) string {
	for p.skip(".") {
		name += "." + p.expectKind(tokName, "a name").text
	}
	return name
}

// known looks a filter or test up. One that is not known is an error of the
// template, unless a condition stands before it.
func (p *parser) known(table map[string]*function, what, name string) *function {
	f := table[name]
	if f == nil && !p.soft {
		p.unknown = append(p.unknown, &Error{Line: p.line(), Text: fmt.Sprintf("%s %q is not known", what, name)})
	}
	return f
}

func (p *parser) test(e expr) expr {
	p.next() // is
	not := p.skipName("not")
	t := p.expectKind(tokName, "the name of a test")
	f := &filtered{of: e, name: p.dotted(t.text), test: true, line: t.line}
	f.f = p.known(tests, "test", f.name)
	switch k := p.cur().kind; {
	case p.skip("("):
		f.arguments = p.arguments()
	case k == tokName && !p.isName("else", "or", "and", "is"), k == tokString, k == tokNumber, p.is("["), p.is("{"):
		// Some tests take one value without parentheses.
		arg := p.primary()
		for n := 0; p.is(".") || p.is("[") || p.is("("); {
			chain(&n)
			arg = p.postfix(arg)
		}
		f.args = []expr{arg}
	case p.isName("is"):
		fail("tests cannot follow each other with \"is\"")
	}
	if not {
		return &negation{f}
	}
	return f
}

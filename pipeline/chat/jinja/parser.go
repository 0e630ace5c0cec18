package jinja

import (
	"slices"
	"strings"
)

// parser turns tokens into statements, by the grammar of Jinja2.
type parser struct {
	tokens  []token
	at      int
	depth   int            // of blocks and expressions
	loops   int            // that a break would end
	soft    bool           // unknown filters are errors only when they are reached
	unknown []*Error       // filters and tests that are not known
	uses    map[string]int // how often loop, caller, kwargs and varargs were read so far
	names   map[string]int
	ordered []string // names by id
}

func (p *parser) cur() *token { return &p.tokens[p.at] }

func (p *parser) line() int { return p.cur().line }

func (p *parser) next() *token {
	t := &p.tokens[p.at]
	if t.kind != tokEOF {
		p.at++
	}
	return t
}

// is tells whether the current token is this operator.
func (p *parser) is(op string) bool { return p.cur().kind == tokOperator && p.cur().text == op }

func (p *parser) isName(names ...string) bool {
	return p.cur().kind == tokName && slices.Contains(names, p.cur().text)
}

func (p *parser) skip(op string) bool {
	if p.is(op) {
		p.at++
		return true
	}
	return false
}

func (p *parser) skipName(name string) bool {
	if p.isName(name) {
		p.at++
		return true
	}
	return false
}

func (p *parser) expect(op string) {
	if !p.skip(op) {
		fail("expected %q, got %s", op, p.cur())
	}
}

func (p *parser) expectKind(k kind, what string) *token {
	if p.cur().kind != k {
		fail("expected %s, got %s", what, p.cur())
	}
	return p.next()
}

func (t *token) String() string {
	switch t.kind {
	case tokEOF:
		return "the end of the template"
	case tokVariableEnd:
		return "}}"
	case tokBlockEnd:
		return "%}"
	}
	return "\"" + t.text + "\""
}

// deeper bounds how far the parser, and later the evaluator, goes down.
func (p *parser) deeper() func() {
	if p.depth++; p.depth > maxNesting {
		fail("nested more than %d deep", maxNesting)
	}
	return func() { p.depth-- }
}

// chain bounds nodes that lean on each other without parentheses.
func chain(n *int) {
	if *n++; *n > maxChain {
		fail("more than %d operators in a row", maxChain)
	}
}

// id is the number of a name.
func (p *parser) id(name string) int {
	i, ok := p.names[name]
	if !ok {
		i = len(p.ordered)
		p.names[name] = i
		p.ordered = append(p.ordered, name)
	}
	return i
}

// body reads statements up to one of the ends, and its name; the token after it
// is current. No ends: up to the end of the template.
func (p *parser) body(ends ...string) (stmts []stmt, end string) {
	defer p.deeper()()
	if len(ends) > 0 {
		p.skip(":") // as in Python
		p.expectKind(tokBlockEnd, `"%}"`)
	}
	for {
		switch t := p.next(); t.kind {
		case tokEOF:
			if len(ends) > 0 {
				fail("%s is missing", strings.Join(ends, " or "))
			}
			return stmts, ""
		case tokData:
			stmts = append(stmts, &text{t.text})
		case tokVariable:
			e := p.tuple(true, false)
			p.expectKind(tokVariableEnd, `"}}"`)
			stmts = append(stmts, &output{e, t.line})
		default: // tokBlock: a lexer gives no other outside of tags
			if len(ends) > 0 && p.isName(ends...) {
				return stmts, p.next().text
			}
			name := p.expectKind(tokName, "the name of a statement").text
			stmts = append(stmts, p.statement(name, t.line)...)
			p.expectKind(tokBlockEnd, `"%}"`)
		}
	}
}

// closed is body for statements with one end.
func (p *parser) closed(end string) []stmt {
	b, _ := p.body(end)
	return b
}

func (p *parser) statement(name string, line int) []stmt {
	switch name {
	case "for":
		return []stmt{p.forLoop(line)}
	case "if":
		return []stmt{p.branch(line)}
	case "set":
		return []stmt{p.set(line)}
	case "macro":
		return []stmt{p.macro()}
	case "call":
		return []stmt{p.callBlock()}
	case "filter":
		f := p.filter(nil, true)
		return []stmt{&filterBlock{f, p.closed("endfilter"), line}}
	case "with":
		return []stmt{p.with()}
	case "generation":
		return []stmt{p.callerBlock("endgeneration")}
	case "block":
		return []stmt{p.block()}
	case "print":
		var out []stmt
		for p.cur().kind != tokBlockEnd {
			if len(out) > 0 {
				p.expect(",")
			}
			out = append(out, &output{p.expression(true), line})
		}
		return out
	case "break", "continue":
		if p.loops == 0 {
			fail("%q outside a loop", name)
		}
		if name == "break" {
			return []stmt{&loopControl{breakLoop}}
		}
		return []stmt{&loopControl{continueLoop}}
	case "include", "import", "from", "extends", "autoescape", "do", "trans":
		fail("statement %q is not supported in chat templates", name)
	}
	if strings.HasPrefix(name, "end") || name == "else" || name == "elif" {
		fail("%q closes nothing that is open", name)
	}
	fail("unknown statement %q", name)
	return nil
}

// inner parses something whose loops and unknown filters are its own.
func (p *parser) inner(soft bool, do func()) {
	was, loops := p.soft, p.loops
	p.soft, p.loops = soft, 0
	do()
	p.soft, p.loops = was, loops
}

func (p *parser) forLoop(line int) stmt {
	f := &loop{line: line, loopID: p.id("loop")}
	f.target = p.target()
	if !p.skipName("in") {
		fail(`expected "in", got %s`, p.cur())
	}
	f.over = p.tuple(false, false)
	if p.skipName("if") {
		f.test = p.expression(true)
	}
	f.recursive = p.skipName("recursive")
	before, loops, soft := p.uses["loop"], p.loops, p.soft
	p.soft = false
	p.loops++
	body, end := p.body("endfor", "else")
	p.loops = loops
	f.body, f.extended = body, f.recursive || p.uses["loop"] > before
	if end == "else" {
		f.other = p.closed("endfor")
	}
	p.soft = soft
	return f
}

func (p *parser) branch(line int) stmt {
	b := &branch{line: line}
	soft := p.soft
	p.soft = true
	defer func() { p.soft = soft }()
	for {
		b.tests = append(b.tests, p.tuple(false, false))
		body, end := p.body("elif", "else", "endif")
		b.bodies = append(b.bodies, body)
		switch end {
		case "elif":
			continue
		case "else":
			b.other = p.closed("endif")
		}
		return b
	}
}

func (p *parser) set(line int) stmt {
	t := p.target()
	if p.skip("=") {
		return &assign{t, p.tuple(true, false), line}
	}
	var filter expr
	if p.is("|") {
		filter = p.filter(nil, false)
	}
	return &assignBlock{t, filter, p.closed("endset"), line}
}

// target reads what is assigned to: names or attributes, and tuples of them.
func (p *parser) target() target {
	var all []target
	many := false
	for {
		if p.cur().kind == tokBlockEnd || p.is(")") || p.is("=") {
			break
		}
		all = append(all, p.oneTarget())
		if !p.skip(",") {
			break
		}
		many = true
	}
	switch {
	case len(all) == 0:
		fail("expected a name to assign to, got %s", p.cur())
	case many:
		return target{tuple: all, many: true}
	}
	return all[0]
}

func (p *parser) oneTarget() target {
	defer p.deeper()()
	if p.skip("(") {
		t := p.target()
		p.expect(")")
		return t
	}
	name := p.expectKind(tokName, "a name to assign to").text
	t := p.nameTarget(name)
	if p.skip(".") {
		t.attr = p.expectKind(tokName, "an attribute").text
	}
	return t
}

func (p *parser) nameTarget(name string) target {
	switch name {
	case "true", "false", "none", "True", "False", "None":
		fail("can't assign to %q", name)
	}
	return target{id: p.id(name), name: name}
}

func (p *parser) macro() stmt {
	name := p.expectKind(tokName, "the name of the macro").text
	def := &macroDef{name: name}
	if !p.is("(") {
		fail(`"macro" needs a list of parameters, got %s`, p.cur())
	}
	p.signature(def)
	p.macroBody(def, "endmacro")
	return &defineStmt{p.nameTarget(name).id, def}
}

func (p *parser) macroBody(def *macroDef, end string) {
	before := [3]int{p.uses["kwargs"], p.uses["varargs"], p.uses["caller"]}
	p.inner(false, func() { def.body = p.closed(end) })
	def.kwargs, def.varargs, def.caller = p.uses["kwargs"] > before[0], p.uses["varargs"] >
		before[1], p.uses["caller"] > before[2]
	def.kwargsID, def.varargsID, def.cID = p.id("kwargs"), p.id("varargs"), p.id("caller")
	for _, t := range def.params {
		switch t.name {
		case "kwargs":
			def.kwargs = false
		case "varargs":
			def.varargs = false
		case "caller":
			def.caller = false
		}
	}
}

func (p *parser) signature(def *macroDef) {
	p.expect("(")
	for !p.is(")") {
		if len(def.params) > 0 {
			p.expect(",")
		}
		def.params = append(def.params, p.nameTarget(p.expectKind(tokName, "the name of a parameter").text))
		if p.skip("=") {
			def.defaults = append(def.defaults, p.expression(true))
		} else if len(def.defaults) > 0 {
			fail("non-default argument follows default argument")
		}
	}
	p.expect(")")
}

func (p *parser) callBlock() stmt {
	def := &macroDef{name: "caller"}
	if p.is("(") {
		p.signature(def)
	}
	c, ok := p.expression(true).(*call)
	if !ok {
		fail("expected a call")
	}
	p.macroBody(def, "endcall")
	return &callBlock{c, def}
}

// callerBlock reads a block that Jinja2 runs as a macro of its own: its
// variables stay in it.
func (p *parser) callerBlock(end string) stmt {
	s := &scoped{}
	p.inner(false, func() { s.body = p.closed(end) })
	return s
}

func (p *parser) block() stmt {
	name := p.expectKind(tokName, "the name of the block").text
	_ = p.skipName("scoped") || p.skipName("required")
	s := &scoped{}
	p.inner(false, func() { s.body = p.closed("endblock") })
	p.skipName(name)
	return s
}

func (p *parser) with() stmt {
	w := &with{}
	for p.cur().kind != tokBlockEnd {
		if len(w.targets) > 0 {
			p.expect(",")
		}
		w.targets = append(w.targets, p.oneTarget())
		p.expect("=")
		w.values = append(w.values, p.expression(true))
	}
	soft := p.soft
	p.soft = false
	w.body = p.closed("endwith")
	p.soft = soft
	return w
}

package jinja

func (r *run) block(body []stmt) signal {
	for _, s := range body {
		r.step(1)
		if sig := s.exec(r); sig != goOn {
			return sig
		}
	}
	return goOn
}

func (s *text) exec(r *run) signal {
	r.print(s.value)
	return goOn
}

func (s *output) exec(r *run) signal {
	r.line = s.line
	r.print(s.value.eval(r))
	return goOn
}

func (s *branch) exec(r *run) signal {
	for i, test := range s.tests {
		r.line = s.line
		if truth(test.eval(r)) {
			return r.block(s.bodies[i])
		}
	}
	return r.block(s.other)
}

func (s *loopControl) exec(*run) signal { return s.signal }

func (s *assign) exec(r *run) signal {
	r.line = s.line
	r.assign(&s.target, s.value.eval(r))
	return goOn
}

// assign gives a target its value.
func (r *run) assign(t *target, v any) {
	switch {
	case t.many:
		next, ok := r.iterator(v)
		if !ok {
			typeError("cannot unpack non-iterable %s object", typeName(v))
		}
		for i := range t.tuple {
			x, ok := next()
			if !ok {
				fail("ValueError: not enough values to unpack (expected %d, got %d)", len(t.tuple), i)
			}
			r.assign(&t.tuple[i], x)
		}
		if _, more := next(); more {
			fail("ValueError: too many values to unpack (expected %d)", len(t.tuple))
		}
	case t.attr != "":
		n, ok := r.get(t.id).(*namespace)
		if !ok {
			fail("cannot assign attribute on non-namespace object")
		}
		n.check(t.attr)
		r.make(32)
		n.attrs.Set(t.attr, v)
	default:
		r.set(t.id, v)
	}
}

func (n *namespace) check(name string) {
	if name != "" && name[0] == '_' {
		fail("SecurityError: a namespace cannot have the attribute %q, which starts with an underscore", name)
	}
}

func (s *assignBlock) exec(r *run) signal {
	r.line = s.line
	v, sig := r.inner(s.body)
	if sig != goOn {
		return sig
	}
	var value any = v
	if s.filter != nil {
		value = r.filterText(s.filter, v)
	}
	r.assign(&s.target, value)
	return goOn
}

// inner is what a block writes, with variables of its own.
func (r *run) inner(body []stmt) (string, signal) {
	was := r.scope
	r.push()
	text, sig := r.capture(func() signal { return r.block(body) })
	r.scope = was
	return text, sig
}

// filterText applies the filters of a block, the first of which has no operand.
func (r *run) filterText(f expr, text string) any {
	first := f.(*filtered)
	if first.of == nil {
		return first.apply(r, text)
	}
	return first.apply(r, r.filterText(first.of, text))
}

func (s *filterBlock) exec(r *run) signal {
	r.line = s.line
	text, sig := r.inner(s.body)
	if sig == goOn {
		r.print(r.filterText(s.filter, text))
	}
	return sig
}

func (s *with) exec(r *run) signal {
	values := make([]any, len(s.values))
	for i, v := range s.values {
		values[i] = v.eval(r)
	}
	was := r.scope
	r.push()
	for i := range s.targets {
		r.assign(&s.targets[i], values[i])
	}
	sig := r.block(s.body)
	r.scope = was
	return sig
}

func (s *scoped) exec(r *run) signal {
	was := r.scope
	r.push()
	sig := r.block(s.body)
	r.scope = was
	return sig
}

func (s *defineStmt) exec(r *run) signal {
	r.keep()
	r.make(64)
	r.set(s.id, &macro{s.macroDef, r.scope})
	return goOn
}

func (s *callBlock) exec(r *run) signal {
	r.keep()
	f := s.call.of.eval(r)
	pos, kw := s.call.evalArguments(r)
	kw.names, kw.values = append(kw.names, "caller"), append(kw.values, &macro{s.caller, r.scope})
	r.line = s.call.line
	r.print(r.call(f, pos, kw))
	return goOn
}

func (s *loop) exec(r *run) signal {
	r.line = s.line
	over := s.over.eval(r)
	if s.recursive {
		r.print(s.render(r, over, 0))
		return goOn
	}
	s.turns(r, over, 0)
	return goOn
}

// render is a recursive loop's call.
func (s *loop) render(r *run, over any, depth int) string {
	r.enter()
	text, _ := r.capture(func() signal { s.turns(r, over, depth); return goOn })
	r.leave()
	return text
}

// turns runs the loop. A turn's variables are its own.
func (s *loop) turns(r *run, over any, depth int) {
	outer, outerItem := r.scope, r.item
	next := r.iterate(over)
	if s.test != nil {
		next = s.filter(r, next)
		over = nil
	}
	var ctx *loopContext
	if s.extended {
		ctx = &loopContext{loop: s, outer: outer, over: over, source: next, index0: -1, depth: depth}
		next = ctx.next
		r.make(128)
	}
	r.loops++
	none := true
	turn := &scope{parent: outer}
	for x, ok := next(); ok; x, ok = next() {
		if turn.kept {
			turn = &scope{parent: outer}
		}
		turn.names, turn.values = turn.names[:0], turn.values[:0]
		r.scope = turn
		if r.loops == 1 {
			r.item = x
		}
		r.assign(&s.target, x)
		if s.extended {
			turn.set(s.loopID, ctx)
		}
		sig := r.block(s.body)
		if sig == breakLoop {
			break
		}
		none = none && sig == continueLoop // in Jinja2 only a turn that ends counts
		r.scope = outer
	}
	r.loops--
	r.scope, r.item = outer, outerItem
	if none && len(s.other) > 0 {
		r.push()
		r.block(s.other)
		r.scope = outer
	}
}

// filter passes on the items that the loop's test is true for.
func (s *loop) filter(r *run, next func() (any, bool)) func() (any, bool) {
	outer := r.scope
	return func() (any, bool) {
		was := r.scope
		defer func() { r.scope = was }()
		for {
			x, ok := next()
			if !ok {
				return nil, false
			}
			r.scope = &scope{parent: outer}
			r.assign(&s.target, x)
			if truth(s.test.eval(r)) {
				return x, true
			}
		}
	}
}

// loopContext is the variable "loop".
type loopContext struct {
	loop          *loop
	outer         *scope
	over          any // nil: its length is not known before it ends
	source        func() (any, bool)
	index0, depth int
	size          int  // once it is known
	sized         bool // size is
	before, cur   any
	after         any
	peeked, more  bool // after is the next item; there is one
	changed       []any
	called        bool
}

func (l *loopContext) next() (any, bool) {
	x, ok := l.peek()
	l.peeked = false
	if !ok {
		return nil, false
	}
	l.index0++
	l.before, l.cur = l.cur, x
	return x, true
}

func (l *loopContext) peek() (any, bool) {
	if !l.peeked {
		l.after, l.more = l.source()
		l.peeked = true
	}
	return l.after, l.more
}

func (l *loopContext) length(r *run) int {
	if l.sized {
		return l.size
	}
	l.sized = true
	if _, once := l.over.(*generator); l.over != nil && !once {
		l.size = r.length(l.over)
		return l.size
	}
	first, ok := l.peek()
	var rest []any
	for ok {
		rest = append(rest, first)
		r.make(16)
		first, ok = l.source()
	}
	l.source, l.peeked = each(rest), false
	l.size = l.index0 + 1 + len(rest)
	return l.size
}

// attr returns an attribute of the variable "loop".
func (l *loopContext) attr(r *run, name string) (any, bool) {
	switch name {
	case "index":
		return l.index0 + 1, true
	case "index0":
		return l.index0, true
	case "first":
		return l.index0 == 0, true
	case "last":
		_, more := l.peek()
		return !more, true
	case "length":
		return l.length(r), true
	case "revindex":
		return l.length(r) - l.index0, true
	case "revindex0":
		return l.length(r) - l.index0 - 1, true
	case "depth":
		return l.depth + 1, true
	case "depth0":
		return l.depth, true
	case "previtem":
		if l.index0 == 0 {
			return &undefined{text: "there is no previous item"}, true
		}
		return l.before, true
	case "nextitem":
		if x, more := l.peek(); more {
			return x, true
		}
		return &undefined{text: "there is no next item"}, true
	case "cycle", "changed":
		return method{l, loopMethods[name]}, true
	}
	return nil, false
}

var loopMethods map[string]*function

func init() { // not in the declaration: functions look into the tables
	loopMethods = methodTable(map[string]declared{
		"cycle": {"self *", func(r *run, a []any) any {
			l, items := a[0].(*loopContext), a[1].([]any)
			if len(items) == 0 {
				typeError("no items for cycling given")
			}
			return items[l.index0%len(items)]
		}},
		"changed": {"self *", func(r *run, a []any) any {
			l, now := a[0].(*loopContext), a[1].([]any)
			if l.called && r.sameItems(l.changed, now, 0) {
				return false
			}
			l.called, l.changed = true, now
			return true
		}},
	})
}

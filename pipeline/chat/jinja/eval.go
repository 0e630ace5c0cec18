package jinja

import "strings"

func (e *constant) eval(*run) any { return e.value }

func (e *variable) eval(r *run) any {
	if v := r.get(e.id); v != missing {
		return v
	}
	return &undefined{text: "'" + e.name + "' is undefined"}
}

func (e *listOf) eval(r *run) any { return &List{r.evalAll(e.items)} }

func (e *tupleOf) eval(r *run) any { return &tuple{items: r.evalAll(e.items)} }

func (r *run) evalAll(items []expr) []any {
	r.items(len(items))
	out := make([]any, len(items))
	for i, x := range items {
		out[i] = x.eval(r)
	}
	return out
}

func (e *dictOf) eval(r *run) any {
	r.items(2 * len(e.keys))
	d := NewDict(len(e.keys))
	for i, k := range e.keys {
		d.assign(k.eval(r), e.values[i].eval(r))
	}
	return d
}

func (e *negation) eval(r *run) any { return !truth(e.of.eval(r)) }

func (e *sign) eval(r *run) any {
	v := e.of.eval(r)
	use(v)
	if !isNumber(v) {
		op := "+"
		if e.minus {
			op = "-"
		}
		typeError("bad operand type for unary %s: '%s'", op, typeName(v))
	}
	switch f, ok := v.(float64); {
	case ok && e.minus:
		return -f
	case ok:
		return f
	}
	op := "+"
	if e.minus {
		op = "-"
	}
	n, _ := arithmetic(op, 0, v)
	return n
}

func (e *logic) eval(r *run) any {
	v := e.left.eval(r)
	if truth(v) == e.and {
		return e.right.eval(r)
	}
	return v
}

func (e *comparison) eval(r *run) any {
	left := e.first.eval(r)
	for i, op := range e.ops {
		right := e.rest[i].eval(r)
		if !r.compare(op, left, right) {
			return false
		}
		left = right
	}
	return true
}

func (e *conditional) eval(r *run) any {
	switch {
	case truth(e.test.eval(r)):
		return e.yes.eval(r)
	case e.no != nil:
		return e.no.eval(r)
	}
	return &undefined{text: "the inline if-expression evaluated to false and no else section was defined."}
}

func (e *concat) eval(r *run) any {
	parts := make([]string, len(e.items))
	size := 0
	for i, x := range e.items {
		parts[i] = r.str(x.eval(r))
		size += len(parts[i])
	}
	r.make(size)
	return strings.Join(parts, "")
}

func (e *binary) eval(r *run) any { return r.binary(e.op, e.left.eval(r), e.right.eval(r)) }

// binary is a op b.
func (r *run) binary(op string, a, b any) any {
	use(a)
	if _, text := textOf(a); !text || op != "%" {
		use(b) // "%" formats undefined values as nothing
	}
	if v, ok := arithmetic(op, a, b); ok {
		return v
	}
	switch op {
	case "+":
		return r.add(a, b)
	case "*":
		if n, ok := intOf(b); ok {
			if v := r.repeat(a, n); v != nil {
				return v
			}
		} else if n, ok := intOf(a); ok {
			if v := r.repeat(b, n); v != nil {
				return v
			}
		}
	case "%":
		if s, ok := a.(string); ok {
			return r.percent(s, b)
		}
		if s, ok := a.(markup); ok {
			return markup(r.percent(string(s), r.escapeAll(b)))
		}
	}
	if op == "**" {
		op = "** or pow()"
	}
	typeError("unsupported operand type(s) for %s: '%s' and '%s'", op, typeName(a), typeName(b))
	return nil
}

func (r *run) add(a, b any) any {
	switch x := a.(type) {
	case string, markup:
		s, _ := textOf(a)
		t, ok := textOf(b)
		if !ok {
			typeError("can only concatenate str (not \"%s\") to str", typeName(b))
		}
		_, safeA := a.(markup)
		_, safeB := b.(markup)
		if safeA || safeB {
			s, t = string(r.escape(a)), string(r.escape(b))
			r.make(len(s) + len(t))
			return markup(s + t)
		}
		r.make(len(s) + len(t))
		return s + t
	case *List:
		y, ok := b.(*List)
		if !ok {
			typeError("can only concatenate list (not \"%s\") to list", typeName(b))
		}
		return &List{r.joined(x.Items, y.Items)}
	case *tuple:
		y, ok := b.(*tuple)
		if !ok {
			typeError("can only concatenate tuple (not \"%s\") to tuple", typeName(b))
		}
		return &tuple{items: r.joined(x.items, y.items)}
	}
	typeError("unsupported operand type(s) for +: '%s' and '%s'", typeName(a), typeName(b))
	return nil
}

func (r *run) joined(a, b []any) []any {
	r.items(len(a) + len(b))
	return append(append(make([]any, 0, len(a)+len(b)), a...), b...)
}

// repeat is v n times; nil if v cannot be repeated.
func (r *run) repeat(v any, n int) any {
	n = max(n, 0)
	many := func(items []any) []any {
		if n > 0 && len(items) > maxMade/n {
			fail("a list of %d times %d items", len(items), n)
		}
		r.items(len(items) * n)
		out := make([]any, 0, len(items)*n)
		for range n {
			out = append(out, items...)
		}
		return out
	}
	switch v := v.(type) {
	case string, markup:
		s, _ := textOf(v)
		if n > 0 && len(s) > maxMade/n {
			fail("a string of %d times %d bytes", len(s), n)
		}
		r.make(len(s) * n)
		s = strings.Repeat(s, n)
		if _, ok := v.(markup); ok {
			return markup(s)
		}
		return s
	case *List:
		if len(v.Items) == 0 {
			return &List{}
		}
		return &List{many(v.Items)}
	case *tuple:
		if len(v.items) == 0 {
			return &tuple{}
		}
		return &tuple{items: many(v.items)}
	}
	return nil
}

func (e *filtered) eval(r *run) any { return e.apply(r, e.of.eval(r)) }

// apply runs the filter or test on a value.
func (e *filtered) apply(r *run, v any) any {
	if e.f == nil {
		r.line = e.line
		fail("%s %q is not known", map[bool]string{true: "test", false: "filter"}[e.test], e.name)
	}
	pos, kw := e.evalArguments(r, v)
	r.line = e.line
	return e.f.call(r, pos, kw)
}

// evalArguments returns the arguments, after those that are given.
func (a *arguments) evalArguments(r *run, first ...any) (pos []any, kw kwargs) {
	pos = make([]any, len(first), len(first)+len(a.args))
	copy(pos, first)
	for _, x := range a.args {
		pos = append(pos, x.eval(r))
	}
	if a.star != nil {
		rest := r.collect(a.star.eval(r))
		r.items(len(rest))
		pos = append(pos, rest...)
	}
	if len(a.names) > 0 {
		kw.names, kw.values = append(kw.names, a.names...), make([]any, 0, len(a.names))
		for _, x := range a.values {
			kw.values = append(kw.values, x.eval(r))
		}
	}
	if a.double != nil {
		d, ok := a.double.eval(r).(*Dict)
		if !ok {
			typeError("argument after ** must be a mapping")
		}
		r.items(2 * d.Len())
		for i, k := range d.keys {
			name, ok := textOf(k)
			if !ok {
				typeError("keywords must be strings")
			}
			kw.names, kw.values = append(kw.names, name), append(kw.values, d.values[i])
		}
	}
	return pos, kw
}

func (e *call) eval(r *run) any {
	var f any
	if a, ok := e.of.(*attribute); ok { // a method needs no value of its own
		self := a.of.eval(r)
		r.line = a.line
		if m := methodOf(self, a.name); m != nil {
			pos, kw := e.evalArguments(r, self)
			r.line = e.line
			return m.call(r, pos, kw)
		}
		f = r.attribute(self, a.name)
	} else {
		f = e.of.eval(r)
	}
	pos, kw := e.evalArguments(r)
	r.line = e.line
	return r.call(f, pos, kw)
}

// call calls any value.
func (r *run) call(f any, pos []any, kw kwargs) any {
	r.step(1)
	switch f := f.(type) {
	case *function:
		return f.call(r, pos, kw)
	case method:
		return f.f.call(r, append([]any{f.self}, pos...), kw)
	case *macro:
		return f.call(r, pos, kw)
	case *loopContext:
		if !f.loop.recursive {
			typeError("The loop must have the 'recursive' marker to be called recursively.")
		}
		if len(pos) != 1 || len(kw.names) > 0 {
			typeError("loop() takes one argument")
		}
		was := r.scope
		r.scope = f.outer
		text := f.loop.render(r, pos[0], f.depth+1)
		r.scope = was
		return text
	}
	use(f)
	typeError("'%s' object is not callable", typeName(f))
	return nil
}

// call runs a macro and returns what it writes.
func (m *macro) call(r *run, pos []any, kw kwargs) any {
	r.enter()
	r.make(64 + 32*len(m.params))
	s := &scope{parent: m.scope}
	wantCaller := m.caller
	for i, p := range m.params {
		switch {
		case i < len(pos):
			s.set(p.id, pos[i])
		default:
			v, ok := kw.take(p.name)
			if !ok {
				v = missing
			}
			s.set(p.id, v)
		}
	}
	if wantCaller {
		v, ok := kw.take("caller")
		if !ok || v == nil {
			v = &undefined{text: "No caller defined"}
		}
		s.set(m.cID, v)
	}
	switch {
	case m.kwargs:
		d := NewDict(len(kw.names))
		for i, n := range kw.names {
			d.Set(n, kw.values[i])
		}
		s.set(m.kwargsID, d)
	case len(kw.names) > 0:
		typeError("macro '%s' takes no keyword argument '%s'", m.name, kw.names[0])
	}
	switch {
	case m.varargs:
		s.set(m.varargsID, &tuple{items: pos[min(len(pos), len(m.params)):]})
	case len(pos) > len(m.params):
		typeError("macro '%s' takes not more than %d argument(s)", m.name, len(m.params))
	}
	was, loops := r.scope, r.loops
	r.scope = s
	for i, p := range m.params {
		if s.values[i] != missing {
			continue
		}
		if k := i - len(m.params) + len(m.defaults); k >= 0 {
			s.values[i] = m.defaults[k].eval(r)
		} else {
			s.values[i] = &undefined{text: "parameter '" + p.name + "' was not provided"}
		}
	}
	line := r.line
	text, _ := r.capture(func() signal { return r.block(m.body) })
	r.scope, r.loops, r.line = was, loops, line
	r.leave()
	return text
}

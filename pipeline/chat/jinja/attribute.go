package jinja

import (
	"math/big"
	"strings"
)

// mutators are the methods that the sandbox does not let templates call.
var mutators = map[string]string{
	"list": " append clear pop reverse insert sort extend remove ",
	"dict": " clear pop popitem setdefault update ",
}

func (e *attribute) eval(r *run) any {
	v := e.of.eval(r)
	r.line = e.line
	return r.attribute(v, e.name)
}

func (e *item) eval(r *run) any {
	v := e.of.eval(r)
	if s, ok := e.key.(*sliced); ok {
		r.line = e.line
		return s.of(r, v)
	}
	key := e.key.eval(r)
	r.line = e.line
	return r.getItem(v, key)
}

func (e *sliced) eval(*run) any {
	fail("a slice among other indices")
	return nil
}

// attribute is v.name: Python's attributes first, then keys.
func (r *run) attribute(v any, name string) any {
	if u, ok := v.(*undefined); ok && (!isInternal(name) || u.unsafe) {
		use(v)
	}
	if x, ok := r.ownAttribute(v, name); ok {
		return x
	}
	if d, ok := v.(*Dict); ok {
		if x, ok := d.Get(name); ok {
			return x
		}
	}
	return &undefined{text: "'" + objectName(v) + "' has no attribute '" + name + "'"}
}

// getItem is v[key]: keys first, then Python's attributes.
func (r *run) getItem(v, key any) any {
	use(v)
	if x, ok := r.subscript(v, key); ok {
		return x
	}
	if name, ok := textOf(key); ok {
		if x, ok := r.ownAttribute(v, name); ok {
			return x
		}
		return &undefined{text: "'" + objectName(v) + "' has no attribute '" + name + "'"}
	}
	return &undefined{text: objectName(v) + " has no element " + r.repr(key)}
}

// ownAttribute returns what Python's getattr does in the sandbox.
func (r *run) ownAttribute(v any, name string) (any, bool) {
	if m := methodOf(v, name); m != nil {
		return method{v, m}, true
	}
	switch v := v.(type) {
	case *loopContext:
		return v.attr(r, name)
	case *namespace:
		return v.attrs.Get(name)
	case *tuple:
		for i, n := range v.names {
			if n == name {
				return v.items[i], true
			}
		}
	case *cycler:
		if name == "current" {
			return v.items[v.at], true
		}
	case *macro:
		switch name {
		case "name":
			return v.name, true
		case "caller":
			return v.caller, true
		case "catch_kwargs":
			return v.kwargs, true
		case "catch_varargs":
			return v.varargs, true
		case "arguments":
			names := &tuple{}
			for _, p := range v.params {
				names.items = append(names.items, p.name)
			}
			return names, true
		}
	case span:
		if n, ok := map[string]int{"start": v.start, "stop": v.stop, "step": v.step}[name]; ok {
			return n, true
		}
	case int, bool, *big.Int, float64:
		switch name {
		case "real":
			n, _ := arithmetic("+", v, 0)
			return n, true
		case "imag":
			n, _ := arithmetic("*", v, 0)
			return n, true
		}
	}
	if strings.Contains(mutators[typeName(v)], " "+name+" ") || isInternal(name) && !hasKey(v, name) {
		return &undefined{text: "SecurityError: access to attribute '" + name + "' of '" + typeName(v) +
			"' object is unsafe.", unsafe: true}, true
	}
	return nil, false
}

// isInternal: every object in Python has such attributes.
func isInternal(name string) bool {
	return len(name) > 4 && strings.HasPrefix(name, "__") && strings.HasSuffix(name, "__")
}

func hasKey(v any, name string) bool {
	d, ok := v.(*Dict)
	if ok {
		_, ok = d.Get(name)
	}
	return ok
}

func objectName(v any) string {
	if v == nil {
		return "None"
	}
	return typeName(v) + " object"
}

// subscript is Python's v[key]; not ok where Python raises a type or lookup error.
func (r *run) subscript(v, key any) (any, bool) {
	switch v := v.(type) {
	case *Dict:
		h, ok := hashKey(key, 0)
		if !ok {
			return nil, false
		}
		if i := v.find(h); i >= 0 {
			return v.values[i], true
		}
		return nil, false
	}
	i, ok := intOf(key)
	if !ok {
		return nil, false
	}
	switch v := v.(type) {
	case *List:
		return at(v.Items, i)
	case *tuple:
		return at(v.items, i)
	case string, markup:
		s, _ := textOf(v)
		r.look(len(s))
		c, ok := runeAt(s, i)
		if _, safe := v.(markup); safe {
			return markup(c), ok
		}
		return c, ok
	case span:
		n := v.len()
		if i < 0 {
			i += n
		}
		return v.start + i*v.step, 0 <= i && i < n
	}
	return nil, false
}

func at(items []any, i int) (any, bool) {
	if i < 0 {
		i += len(items)
	}
	if i < 0 || i >= len(items) {
		return nil, false
	}
	return items[i], true
}

func runeAt(s string, i int) (string, bool) {
	if isASCII(s) {
		if i < 0 {
			i += len(s)
		}
		if i < 0 || i >= len(s) {
			return "", false
		}
		return s[i : i+1], true
	}
	if i < 0 {
		i += runeCount(s)
	}
	for from, c := range s {
		if i == 0 {
			return s[from : from+len(string(c))], true
		}
		i--
	}
	return "", false
}

// of is v[from:to:step].
func (e *sliced) of(r *run, v any) any {
	use(v)
	bound := func(x expr) *int {
		if x == nil {
			return nil
		}
		b := x.eval(r)
		if b == nil {
			return nil
		}
		if _, ok := bigOf(b); !ok {
			use(b)
			b = missing
		}
		n := 0
		if b == missing {
			n = -1 << 62
		} else {
			n = index(b)
		}
		return &n
	}
	from, to, step := bound(e.from), bound(e.to), bound(e.step)
	name := func() any { return &undefined{text: objectName(v) + " has no such slice"} }
	for _, b := range []*int{from, to, step} {
		if b != nil && *b == -1<<62 {
			return name()
		}
	}
	switch v := v.(type) {
	case *List:
		return &List{cut(r, v.Items, from, to, step)}
	case *tuple:
		return &tuple{items: cut(r, v.items, from, to, step)}
	case string:
		return cutText(r, v, from, to, step)
	case markup:
		return markup(cutText(r, string(v), from, to, step))
	case span:
		start, n, by := bounds(v.len(), from, to, step)
		return span{v.start + start*v.step, v.start + (start+n*by)*v.step, v.step * by}
	}
	return name()
}

// bounds returns the first index of a slice of n items, how many it has, and
// its step.
func bounds(n int, from, to, step *int) (start, count, by int) {
	by = 1
	if step != nil {
		by = *step
	}
	if by == 0 {
		fail("ValueError: slice step cannot be zero")
	}
	low, high := 0, n
	if by < 0 {
		low, high = -1, n-1
	}
	clamp := func(p *int, otherwise int) int {
		switch {
		case p == nil:
			return otherwise
		case *p < 0:
			return max(low, min(high, max(*p, -n-1)+n))
		}
		return max(low, min(high, *p))
	}
	by = max(-n-1, min(n+1, by))
	if by > 0 {
		start = clamp(from, low)
		if stop := clamp(to, high); stop > start {
			count = (stop-start-1)/by + 1
		}
		return start, count, by
	}
	start = clamp(from, high)
	if stop := clamp(to, low); stop < start {
		count = (start-stop-1)/-by + 1
	}
	return start, count, by
}

func cut(r *run, items []any, from, to, step *int) []any {
	start, n, by := bounds(len(items), from, to, step)
	r.items(n)
	out := make([]any, n)
	for i := range out {
		out[i] = items[start+i*by]
	}
	return out
}

func cutText(r *run, s string, from, to, step *int) string {
	r.make(len(s)) // at most
	if isASCII(s) {
		start, n, by := bounds(len(s), from, to, step)
		if by == 1 {
			return s[start : start+n]
		}
		out := make([]byte, n)
		for i := range out {
			out[i] = s[start+i*by]
		}
		return string(out)
	}
	r.make(4 * len(s))
	runes := []rune(s)
	start, n, by := bounds(len(runes), from, to, step)
	out := make([]rune, n)
	for i := range out {
		out[i] = runes[start+i*by]
	}
	return string(out)
}

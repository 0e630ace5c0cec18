package jinja

import (
	"math/big"
	"strings"
)

// equal is Python's ==.
func (r *run) equal(a, b any) bool { return r.same(a, b, 0) }

func (r *run) same(a, b any, depth int) bool {
	r.step(1)
	if depth > maxValueDepth {
		fail("a value nested more than %d deep", maxValueDepth)
	}
	if s, ok := textOf(a); ok {
		t, ok := textOf(b)
		if ok && len(s) == len(t) {
			r.look(len(s))
		}
		return ok && s == t
	}
	if c, ok := compareNumbers(a, b); ok {
		return c == 0
	}
	switch a := a.(type) {
	case nil:
		return b == nil
	case *undefined:
		_, ok := b.(*undefined)
		return ok
	case *List:
		b, ok := b.(*List)
		return ok && (a == b || r.sameItems(a.Items, b.Items, depth))
	case *tuple:
		b, ok := b.(*tuple)
		return ok && r.sameItems(a.items, b.items, depth)
	case *Dict:
		b, ok := b.(*Dict)
		if !ok || a.Len() != b.Len() {
			return false
		}
		for i, k := range a.keys {
			if v, ok := b.lookup(k); !ok || !r.same(a.values[i], v, depth+1) {
				return false
			}
		}
		return true
	case span:
		b, ok := b.(span)
		n := a.len()
		return ok && n == b.len() && (n == 0 || a.start == b.start && (n == 1 || a.step == b.step))
	case view:
		b, ok := b.(view)
		return ok && a == b
	case method:
		b, ok := b.(method)
		return ok && a.f == b.f && identical(a.self, b.self)
	case float64, int, bool, *big.Int:
		return false // numbers are done; NaN is here
	}
	return identical(a, b)
}

// identical is Python's "is", for values that are pointers.
func identical(a, b any) bool {
	switch a.(type) {
	case method, kwargs:
		return false
	}
	switch b.(type) {
	case method, kwargs:
		return false
	}
	return a == b
}

func (r *run) sameItems(a, b []any, depth int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !r.same(a[i], b[i], depth+1) {
			return false
		}
	}
	return true
}

// compareNumbers orders two numbers; not ok if one is none, or is NaN.
func compareNumbers(a, b any) (int, bool) {
	if i, ok := intOf(a); ok {
		if k, ok := intOf(b); ok {
			switch {
			case i < k:
				return -1, true
			case i > k:
				return 1, true
			}
			return 0, true
		}
	}
	x, ok := exact(a)
	y, ok2 := exact(b)
	if !ok || !ok2 {
		return 0, false
	}
	return x.Cmp(y), true
}

// exact is a number without rounding.
func exact(v any) (*big.Float, bool) {
	if f, ok := v.(float64); ok {
		if f != f {
			return nil, false
		}
		return big.NewFloat(f), true
	}
	i, ok := bigOf(v)
	if !ok {
		return nil, false
	}
	return new(big.Float).SetPrec(maxIntBits + 64).SetInt(i), true
}

// less is Python's <.
func (r *run) less(a, b any) bool { return r.ordered("<", a, b, 0) }

// ordered is a op b, where op is <, <=, > or >=.
func (r *run) ordered(op string, a, b any, depth int) bool {
	r.step(1)
	use(a)
	use(b)
	if depth > maxValueDepth {
		fail("a value nested more than %d deep", maxValueDepth)
	}
	if s, ok := textOf(a); ok {
		if t, ok := textOf(b); ok {
			r.look(min(len(s), len(t)))
			return holds(op, strings.Compare(s, t))
		}
	}
	if c, ok := compareNumbers(a, b); ok {
		return holds(op, c)
	}
	if isNumber(a) && isNumber(b) {
		return false // NaN
	}
	var x, y []any
	switch v := a.(type) {
	case *List:
		if w, ok := b.(*List); ok {
			x, y = v.Items, w.Items
			return r.orderedItems(op, x, y, depth)
		}
	case *tuple:
		if w, ok := b.(*tuple); ok {
			x, y = v.items, w.items
			return r.orderedItems(op, x, y, depth)
		}
	}
	typeError("'%s' not supported between instances of '%s' and '%s'", op, typeName(a), typeName(b))
	return false
}

func (r *run) orderedItems(op string, a, b []any, depth int) bool {
	for i := range min(len(a), len(b)) {
		if !r.same(a[i], b[i], depth+1) {
			return r.ordered(op, a[i], b[i], depth+1)
		}
	}
	return holds(op, len(a)-len(b))
}

func holds(op string, c int) bool {
	switch op {
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	case ">":
		return c > 0
	}
	return c >= 0
}

func isNumber(v any) bool {
	switch v.(type) {
	case int, bool, float64, *big.Int:
		return true
	}
	return false
}

// compare is a op b for every operator of comparison.
func (r *run) compare(op string, a, b any) bool {
	switch op {
	case "==":
		return r.equal(a, b)
	case "!=":
		return !r.equal(a, b)
	case "in":
		return r.contains(b, a)
	case "not in":
		return !r.contains(b, a)
	}
	return r.ordered(op, a, b, 0)
}

// contains is "x in v".
func (r *run) contains(v, x any) bool {
	switch v := v.(type) {
	case string, markup:
		s, _ := textOf(v)
		part, ok := textOf(x)
		if !ok {
			typeError("'in <string>' requires string as left operand, not %s", typeName(x))
		}
		r.look(len(s))
		return strings.Contains(s, part)
	case *Dict:
		_, ok := v.lookup(x)
		return ok
	case view:
		if v.what == "keys" {
			_, ok := v.of.lookup(x)
			return ok
		}
	}
	next, ok := r.iterator(v)
	if !ok {
		typeError("argument of type '%s' is not iterable", typeName(v))
	}
	for y, ok := next(); ok; y, ok = next() {
		if r.equal(y, x) {
			return true
		}
	}
	return false
}

package jinja

import (
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Filters of lists and mappings.

func itemsOf(r *run, a []any) any {
	switch v := a[0].(type) {
	case *undefined:
		return &generator{each(nil)}
	case *Dict:
		next, _ := r.iterator(view{v, "items"})
		return &generator{next}
	}
	// Jinja2's is a generator, so that its error comes when it is used.
	return &generator{func() (any, bool) { typeError("Can only get item pairs from a mapping."); return nil, false }}
}

func first(r *run, a []any) any {
	if v, ok := r.iterate(a[0])(); ok {
		return v
	}
	return &undefined{text: "No first item, sequence was empty."}
}

func last(r *run, a []any) any {
	var v any
	ok := false
	switch s := a[0].(type) {
	case *List:
		v, ok = at(s.Items, -1)
	case *tuple:
		v, ok = at(s.items, -1)
	case string, markup:
		t, _ := textOf(s)
		_, n := utf8.DecodeLastRuneInString(t)
		v, ok = t[len(t)-n:], n > 0
	case *Dict:
		v, ok = at(s.keys, -1)
	case view:
		if n := s.of.Len(); n > 0 {
			v, ok = s.at(r, n-1), true
		}
	case span:
		v, ok = r.subscript(s, -1)
	default:
		use(a[0])
		typeError("'%s' object is not reversible", typeName(a[0]))
	}
	if !ok {
		return &undefined{text: "No last item, sequence was empty."}
	}
	return v
}

func reverse(r *run, a []any) any {
	back := -1
	switch s := a[0].(type) {
	case string:
		return cutText(r, s, nil, nil, &back)
	case markup:
		return markup(cutText(r, string(s), nil, nil, &back))
	}
	use(a[0])
	items := slices.Clone(r.collect(a[0]))
	slices.Reverse(items)
	return &generator{each(items)}
}

// getter returns what gets an attribute such as "a.b.0" of a value; with a
// default, that is what is not there.
func (r *run) getter(attribute, otherwise any) func(any) any {
	if attribute == nil || attribute == missing {
		return func(v any) any { return v }
	}
	parts := []any{attribute}
	if s, ok := textOf(attribute); ok {
		parts = parts[:0]
		for _, p := range strings.Split(s, ".") {
			if i, err := strconv.Atoi(p); err == nil && p[0] != '-' && p[0] != '+' {
				parts = append(parts, i)
			} else {
				parts = append(parts, p)
			}
		}
	}
	return func(v any) any {
		for _, p := range parts {
			v = r.getItem(v, p)
			if isUndefined(v) && otherwise != nil && otherwise != missing {
				v = otherwise
			}
		}
		return v
	}
}

// key returns the sort key of a value: an attribute, without case by default.
func (r *run) key(attribute, caseSensitive any) func(any) any {
	get := r.getter(attribute, nil)
	if truth(or(caseSensitive, false)) {
		return get
	}
	return func(v any) any { return r.foldCase(get(v)) }
}

func (r *run) foldCase(v any) any {
	if s, ok := textOf(v); ok {
		r.make(len(s))
		return lowerText(s)
	}
	return v
}

// sortBy sorts items by their keys; equal ones keep their order.
func (r *run) sortBy(items []any, key func(any) any, reverse bool) []any {
	r.items(3 * len(items))
	keys := make([]any, len(items))
	order := make([]int, len(items))
	for i, v := range items {
		keys[i], order[i] = key(v), i
	}
	sort.SliceStable(order, func(a, b int) bool {
		if reverse {
			a, b = b, a
		}
		return r.less(keys[order[a]], keys[order[b]])
	})
	out := make([]any, len(items))
	for i, k := range order {
		out[i] = items[k]
	}
	return out
}

func sorted(r *run, a []any) any {
	all := []func(any) any{r.key(a[3], a[2])}
	if s, ok := textOf(a[3]); ok {
		all = nil
		for _, name := range strings.Split(s, ",") {
			all = append(all, r.key(name, a[2]))
		}
	}
	key := func(v any) any { // a tuple even of one: what is equal is not asked for its order
		t := &tuple{}
		for _, k := range all {
			t.items = append(t.items, k(v))
		}
		return t
	}
	return &List{r.sortBy(r.collect(a[0]), key, truth(or(a[1], false)))}
}

func dictSort(r *run, a []any) any {
	at := 0
	switch by := r.str(or(a[2], "key")); by {
	case "key":
	case "value":
		at = 1
	default:
		fail("You can only sort by either \"key\" or \"value\"")
	}
	use(a[0])
	d, ok := a[0].(*Dict)
	if !ok {
		fail("'%s' object has no attribute 'items'", typeName(a[0]))
	}
	key := r.key(missing, a[1])
	return &List{r.sortBy(r.collect(view{d, "items"}), func(v any) any { return key(v.(*tuple).items[at]) },
		truth(or(a[3], false)))}
}

func unique(r *run, a []any) any {
	next, key := r.iterate(a[0]), r.key(a[2], a[1])
	seen := NewDict(0)
	return &generator{func() (any, bool) {
		for v, ok := next(); ok; v, ok = next() {
			if k := key(v); !seenKey(seen, k) {
				r.make(64)
				seen.assign(k, nil)
				return v, true
			}
		}
		return nil, false
	}}
}

func seenKey(d *Dict, k any) bool { _, ok := d.lookup(k); return ok }

func extreme(r *run, a []any, most bool) any {
	next, key := r.iterate(a[0]), r.key(a[2], a[1])
	best, ok := next()
	if !ok {
		return &undefined{text: "No aggregated item, sequence was empty."}
	}
	bestKey := key(best)
	for v, ok := next(); ok; v, ok = next() {
		k := key(v)
		if most && r.less(bestKey, k) || !most && r.less(k, bestKey) {
			best, bestKey = v, k
		}
	}
	return best
}

func sum(r *run, a []any) any {
	next, get := r.iterate(a[0]), r.getter(a[1], nil)
	total := or(a[2], 0)
	if _, ok := textOf(total); ok {
		typeError("sum() can't sum strings [use ''.join(seq) instead]")
	}
	for v, ok := next(); ok; v, ok = next() {
		total = r.binary("+", total, get(v))
	}
	return total
}

func join(r *run, a []any) any {
	next, get := r.iterate(a[0]), r.getter(a[2], nil)
	between := r.str(or(a[1], ""))
	var b strings.Builder
	n := 0
	for v, ok := next(); ok; v, ok = next() {
		s := r.str(get(v))
		r.make(len(s) + len(between))
		if n++; n > 1 {
			b.WriteString(between)
		}
		b.WriteString(s)
	}
	return b.String()
}

func batch(r *run, a []any) any {
	next, n := r.iterate(a[0]), index(a[1])
	fill := orNone(a[2])
	done := false
	var row []any
	return &generator{func() (any, bool) {
		for !done {
			v, ok := next()
			if !ok {
				done = true
				break
			}
			full := row
			if len(row) == n {
				row = []any{v}
				return &List{full}, true
			}
			r.make(16)
			row = append(row, v)
		}
		if len(row) == 0 {
			return nil, false
		}
		if fill != nil && len(row) < n {
			r.items(n - len(row))
			for len(row) < n {
				row = append(row, fill)
			}
		}
		out := row
		row = nil
		return &List{out}, true
	}}
}

func sliceInto(r *run, a []any) any {
	items, n := r.collect(a[0]), index(a[1])
	if n == 0 {
		fail("ZeroDivisionError: integer division or modulo by zero")
	}
	fill := orNone(a[2])
	i, from := -1, 0
	return &generator{func() (any, bool) {
		if i++; i >= n {
			return nil, false
		}
		size := len(items) / n
		if i < len(items)%n {
			size++
		}
		r.items(size + 1)
		out := slices.Clone(items[from : from+size])
		from += size
		if fill != nil && i >= len(items)%n {
			out = append(out, fill)
		}
		return &List{out}, true
	}}
}

func groupBy(r *run, a []any) any {
	get := r.getter(a[1], orNone(a[2]))
	key := get
	if !truth(or(a[3], false)) {
		key = func(v any) any { return r.foldCase(get(v)) }
	}
	out := &List{}
	var group *List
	var at any
	for _, v := range r.sortBy(r.collect(a[0]), key, false) {
		k := key(v)
		if group == nil || !r.equal(k, at) {
			group, at = &List{}, k
			r.items(4)
			out.Items = append(out.Items, &tuple{[]any{get(v), group}, []string{"grouper", "list"}})
		}
		r.make(16)
		group.Items = append(group.Items, v)
	}
	return out
}

func mapped(r *run, a []any) any {
	if !truth(a[0]) {
		return &generator{each(nil)}
	}
	var do func(any) any
	pos, kw := a[1].([]any), *a[2].(*kwargs)
	return r.lazily(a[0], func(next func() (any, bool)) (any, bool) {
		if do == nil {
			do = r.mapper(pos, kw)
		}
		v, ok := next()
		if !ok {
			return nil, false
		}
		return do(v), true
	})
}

// lazily is a generator over the items of v, which are asked for when the first
// of its own is.
func (r *run) lazily(v any, do func(next func() (any, bool)) (any, bool)) any {
	var next func() (any, bool)
	return &generator{func() (any, bool) {
		if next == nil {
			next = r.iterate(v)
		}
		return do(next)
	}}
}

// mapper is what the filter map does to each item.
func (r *run) mapper(pos []any, kw kwargs) func(any) any {
	if attr, ok := kw.take("attribute"); ok && len(pos) == 0 {
		otherwise, _ := kw.take("default")
		if len(kw.names) > 0 {
			fail("Unexpected keyword argument '%s'", kw.names[0])
		}
		return r.getter(attr, otherwise)
	}
	if len(pos) == 0 {
		fail("map requires a filter argument")
	}
	f := filters[r.str(pos[0])]
	if f == nil {
		fail("filter %q is not known", r.str(pos[0]))
	}
	return func(v any) any { return f.call(r, append([]any{v}, pos[1:]...), kw) }
}

// selected is the filters select and reject, by an attribute or not.
func selected(r *run, a []any, want, byAttribute bool) any {
	if !truth(a[0]) {
		return &generator{each(nil)}
	}
	var ok func(any) bool
	pos, kw := a[1].([]any), *a[2].(*kwargs)
	return r.lazily(a[0], func(next func() (any, bool)) (any, bool) {
		if ok == nil {
			ok = r.selector(pos, kw, byAttribute)
		}
		for v, more := next(); more; v, more = next() {
			if ok(v) == want {
				return v, true
			}
		}
		return nil, false
	})
}

func (r *run) selector(pos []any, kw kwargs, byAttribute bool) func(any) bool {
	get := r.getter(nil, nil)
	if byAttribute {
		if len(pos) == 0 {
			fail("Missing parameter for attribute name")
		}
		get, pos = r.getter(pos[0], nil), pos[1:]
	}
	if len(pos) == 0 {
		return func(v any) bool { return truth(get(v)) }
	}
	f := tests[r.str(pos[0])]
	if f == nil {
		fail("test %q is not known", r.str(pos[0]))
	}
	return func(v any) bool { return truth(f.call(r, append([]any{get(v)}, pos[1:]...), kw)) }
}

package jinja

import (
	"time"

	"github.com/ncruces/go-strftime"
)

// globals are the functions that every template has.
var globals map[string]*function

func init() { // not in the declaration: functions look into the tables
	globals = methodTable(map[string]declared{
		"raise_exception": {"message", func(r *run, a []any) any {
			panic(&Error{Raised: true, Line: r.line, Text: r.str(a[0])})
		}},
		"range": {"start stop? step?", func(r *run, a []any) any {
			s := span{0, index(a[0]), 1}
			if a[1] != missing {
				s.start, s.stop = s.stop, index(a[1])
			}
			if a[2] != missing {
				s.step = index(a[2])
			}
			const far = 1 << 40
			switch {
			case s.step == 0:
				fail("ValueError: range() arg 3 must not be zero")
			case max(s.start, s.stop, s.step) > far || min(s.start, s.stop, s.step) < -far || s.len() > maxRange:
				fail("OverflowError: a range of more than %d items", maxRange)
			}
			return s
		}},
		"lipsum": {"* **", func(*run, []any) any { fail("lipsum: random text is not supported"); return nil }},
		"self":   {"", func(*run, []any) any { fail("self: blocks of the template cannot be called"); return nil }},
		"dict":   {"from? **", func(r *run, a []any) any { return r.newDict(a[0], a[1].(*kwargs)) }},
		"namespace": {"from? **", func(r *run, a []any) any {
			n := &namespace{r.newDict(a[0], a[1].(*kwargs))}
			for _, k := range n.attrs.keys {
				if name, ok := k.(string); ok {
					n.check(name)
				}
			}
			return n
		}},
		"cycler": {"*", func(r *run, a []any) any {
			items := a[0].([]any)
			if len(items) == 0 {
				typeError("at least one item has to be provided")
			}
			return &cycler{items: items}
		}},
		"joiner": {"sep?", func(r *run, a []any) any {
			used := false
			return &function{name: "joiner", do: func(*run, []any) any {
				if !used {
					used = true
					return ""
				}
				return or(a[0], ", ")
			}}
		}},
		"strftime_now": {"format", func(r *run, a []any) any {
			layout, ok := textOf(a[0])
			if !ok {
				typeError("strftime() argument 1 must be str, not %s", typeName(a[0]))
			}
			now := r.t.Now
			if now.IsZero() {
				now = time.Now()
			}
			r.make(64 * len(layout))
			return strftime.Format(layout, now)
		}},
	})
}

// newDict is Python's dict(from, **kw).
func (r *run) newDict(from any, kw *kwargs) *Dict {
	d := NewDict(len(kw.names))
	switch from := from.(type) {
	case *Dict:
		r.items(2 * from.Len())
		for i, k := range from.keys {
			d.assign(k, from.values[i])
		}
	case absent:
	default:
		next := r.iterate(from)
		for x, ok := next(); ok; x, ok = next() {
			pair := r.collect(x)
			if len(pair) != 2 {
				fail("ValueError: dictionary update sequence element has length %d; 2 is required", len(pair))
			}
			r.items(2)
			d.assign(pair[0], pair[1])
		}
	}
	for i, n := range kw.names {
		d.Set(n, kw.values[i])
	}
	return d
}

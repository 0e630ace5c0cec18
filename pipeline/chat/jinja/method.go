package jinja

import (
	"math"
	"math/bits"
)

// Methods of what is not a string; a[0] is the object. Those that change it are
// not here: the sandbox refuses them (mutators).

var dictMethods map[string]*function

func init() { // not in the declaration: functions look into the tables
	dictMethods = methodTable(map[string]declared{
		"keys":   {"d", func(_ *run, a []any) any { return view{a[0].(*Dict), "keys"} }},
		"values": {"d", func(_ *run, a []any) any { return view{a[0].(*Dict), "values"} }},
		"items":  {"d", func(_ *run, a []any) any { return view{a[0].(*Dict), "items"} }},
		"get": {"d key default?", func(_ *run, a []any) any {
			if v, ok := a[0].(*Dict).lookup(a[1]); ok {
				return v
			}
			return orNone(a[2])
		}},
		"copy": {"d", func(r *run, a []any) any { return r.newDict(a[0], &kwargs{}) }},
		"fromkeys": {"d keys value?", func(r *run, a []any) any {
			d := NewDict(0)
			for _, k := range r.collect(a[1]) {
				r.items(2)
				d.assign(k, orNone(a[2]))
			}
			return d
		}},
	})
}

var listMethods map[string]*function

func init() { // not in the declaration: functions look into the tables
	listMethods = methodTable(map[string]declared{
		"index": {"l value start? stop?", func(r *run, a []any) any {
			items := r.collect(a[0])
			from, to := 0, len(items)
			if a[2] != missing {
				from, _, _ = bounds(len(items), pointer(index(a[2])), nil, nil)
			}
			if a[3] != missing {
				to, _, _ = bounds(len(items), pointer(index(a[3])), nil, nil)
			}
			for i := from; i < to; i++ {
				if r.equal(items[i], a[1]) {
					return i
				}
			}
			fail("ValueError: %s is not in list", r.repr(a[1]))
			return nil
		}},
		"count": {"l value", func(r *run, a []any) any {
			n := 0
			for _, v := range r.collect(a[0]) {
				if r.equal(v, a[1]) {
					n++
				}
			}
			return n
		}},
		"copy": {"l", func(r *run, a []any) any {
			l, ok := a[0].(*List)
			if !ok {
				fail("'%s object' has no attribute 'copy'", typeName(a[0]))
			}
			return &List{r.joined(l.Items, nil)}
		}},
	})
}

func pointer(i int) *int { return &i }

var intMethods map[string]*function

func init() { // not in the declaration: functions look into the tables
	intMethods = methodTable(map[string]declared{
		"bit_length": {"i", func(_ *run, a []any) any {
			i, _ := intOf(a[0])
			if i < 0 {
				return bits.Len64(uint64(-i))
			}
			return bits.Len64(uint64(i))
		}},
		"bit_count": {"i", func(_ *run, a []any) any {
			i, _ := intOf(a[0])
			return bits.OnesCount64(uint64(max(i, -i)))
		}},
		"is_integer": {"i", func(*run, []any) any { return true }},
		"conjugate":  {"i", func(_ *run, a []any) any { i, _ := intOf(a[0]); return i }},
	})
}

var floatMethods map[string]*function

func init() { // not in the declaration: functions look into the tables
	floatMethods = methodTable(map[string]declared{
		"is_integer": {"f", func(_ *run, a []any) any {
			f := a[0].(float64)
			return f == math.Trunc(f) && !math.IsInf(f, 0)
		}},
		"conjugate": {"f", func(_ *run, a []any) any { return a[0] }},
	})
}

var cyclerMethods map[string]*function

func init() { // not in the declaration: functions look into the tables
	cyclerMethods = methodTable(map[string]declared{
		"next": {"c", func(_ *run, a []any) any {
			c := a[0].(*cycler)
			v := c.items[c.at]
			c.at = (c.at + 1) % len(c.items)
			return v
		}},
		"reset": {"c", func(_ *run, a []any) any { a[0].(*cycler).at = 0; return nil }},
	})
}

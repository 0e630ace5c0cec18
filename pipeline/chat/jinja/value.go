package jinja

import (
	"math"
	"math/big"
	"strings"
	"unicode/utf8"
)

// List is a list; templates cannot change it.
type List struct{ Items []any }

// tuple is a tuple; names are those of its items, if they have any.
type tuple struct {
	items []any
	names []string
}

// markup is a string that counts as safe HTML: what is added to it is escaped.
type markup string

// undefined is what a name, key or index that is not there gives. It prints as
// nothing; to use it in any other way is an error with this text.
type undefined struct {
	text   string
	unsafe bool // it is there, but not for templates
}

// span is a range of integers.
type span struct{ start, stop, step int }

func (s span) len() int {
	switch {
	case s.step > 0 && s.start < s.stop:
		return (s.stop-s.start-1)/s.step + 1
	case s.step < 0 && s.start > s.stop:
		return (s.start-s.stop-1)/-s.step + 1
	}
	return 0
}

// view is the keys, values or items of a mapping.
type view struct {
	of   *Dict
	what string
}

// generator gives its items once, each when it is asked for.
type generator struct{ next func() (any, bool) }

// namespace is what set can assign attributes of.
type namespace struct{ attrs *Dict }

type cycler struct {
	items []any
	at    int
}

// function is a filter, test, method or global function. Its parameters are in
// signature (signature.go).
type function struct {
	name      string
	signature signature
	do        func(r *run, a []any) any
}

// method is a function with its object.
type method struct {
	self any
	f    *function
}

// macro is a macro with the variables around it.
type macro struct {
	*macroDef
	scope *scope
}

// kwargs are keyword arguments, in order.
type kwargs struct {
	names  []string
	values []any
}

func (k *kwargs) take(name string) (any, bool) {
	for i, n := range k.names {
		if n == name {
			v := k.values[i]
			k.names = append(append([]string{}, k.names[:i]...), k.names[i+1:]...)
			k.values = append(append([]any{}, k.values[:i]...), k.values[i+1:]...)
			return v, true
		}
	}
	return nil, false
}

// typeName is what Python calls the type of v.
func typeName(v any) string {
	switch v := v.(type) {
	case nil:
		return "NoneType"
	case bool:
		return "bool"
	case int, *big.Int:
		return "int"
	case float64:
		return "float"
	case string:
		return "str"
	case markup:
		return "Markup"
	case *List:
		return "list"
	case *tuple:
		return "tuple"
	case *Dict:
		return "dict"
	case span:
		return "range"
	case view:
		return "dict_" + v.what
	case *generator:
		return "generator"
	case *namespace:
		return "Namespace"
	case *loopContext:
		return "LoopContext"
	case *macro:
		return "Macro"
	case *undefined:
		return "Undefined"
	case method:
		return "builtin_function_or_method"
	case *cycler:
		return "Cycler"
	}
	return "function"
}

// use fails if v is undefined.
func use(v any) {
	if u, ok := v.(*undefined); ok {
		fail("%s", u.text)
	}
}

// truth is Python's bool.
func truth(v any) bool {
	switch v := v.(type) {
	case bool:
		return v
	case nil, *undefined:
		return false
	case string:
		return v != ""
	case int:
		return v != 0
	case *List:
		return len(v.Items) > 0
	case *Dict:
		return v.Len() > 0
	case *tuple:
		return len(v.items) > 0
	case float64:
		return v != 0
	case markup:
		return v != ""
	case span:
		return v.len() > 0
	case view:
		return v.of.Len() > 0
	}
	return true
}

// textOf returns the string of a string.
func textOf(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case markup:
		return string(v), true
	}
	return "", false
}

// intOf returns the number of an integer or a bool, if it has 64 bits.
func intOf(v any) (int, bool) {
	switch v := v.(type) {
	case int:
		return v, true
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

// index is intOf where Python takes integers only; large ones are cut to 64 bits.
func index(v any) int {
	use(v)
	if i, ok := intOf(v); ok {
		return i
	}
	if b, ok := v.(*big.Int); ok {
		if b.Sign() < 0 {
			return math.MinInt
		}
		return math.MaxInt
	}
	typeError("'%s' object cannot be interpreted as an integer", typeName(v))
	return 0
}

func runeCount(s string) int { return utf8.RuneCountInString(s) }

func isASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// length is Python's len.
func (r *run) length(v any) int {
	switch v := v.(type) {
	case string:
		r.look(len(v))
		return runeCount(v)
	case markup:
		return runeCount(string(v))
	case *List:
		return len(v.Items)
	case *tuple:
		return len(v.items)
	case *Dict:
		return v.Len()
	case view:
		return v.of.Len()
	case span:
		return v.len()
	case *undefined:
		return 0
	case *loopContext:
		return v.length(r)
	}
	typeError("object of type '%s' has no len()", typeName(v))
	return 0
}

// iterate returns a function that gives the items of v one by one.
func (r *run) iterate(v any) func() (any, bool) {
	next, ok := r.iterator(v)
	if !ok {
		typeError("'%s' object is not iterable", typeName(v))
	}
	return func() (any, bool) {
		r.step(1)
		return next()
	}
}

func (r *run) iterator(v any) (next func() (any, bool), ok bool) {
	switch v := v.(type) {
	case *List:
		return each(v.Items), true
	case *tuple:
		return each(v.items), true
	case *Dict:
		return each(v.keys), true
	case view:
		i := -1
		return func() (any, bool) {
			if i++; i >= v.of.Len() {
				return nil, false
			}
			return v.at(r, i), true
		}, true
	case string, markup:
		s, _ := textOf(v)
		_, safe := v.(markup)
		return func() (any, bool) {
			if s == "" {
				return nil, false
			}
			_, n := utf8.DecodeRuneInString(s)
			c := s[:n]
			s = s[n:]
			if safe {
				return markup(c), true
			}
			return c, true
		}, true
	case span:
		i, n := -1, v.len()
		return func() (any, bool) {
			if i++; i >= n {
				return nil, false
			}
			return v.start + i*v.step, true
		}, true
	case *generator:
		return v.next, true
	case *undefined:
		return func() (any, bool) { return nil, false }, true
	}
	return nil, false
}

func each(items []any) func() (any, bool) {
	i := -1
	return func() (any, bool) {
		if i++; i >= len(items) {
			return nil, false
		}
		return items[i], true
	}
}

// collect is Python's list: the items of v.
func (r *run) collect(v any) []any {
	switch v := v.(type) {
	case *List:
		return v.Items
	case *tuple:
		return v.items
	}
	var all []any
	next := r.iterate(v)
	for x, ok := next(); ok; x, ok = next() {
		r.make(16)
		all = append(all, x)
	}
	return all
}

func (v view) at(r *run, i int) any {
	switch v.what {
	case "keys":
		return v.of.keys[i]
	case "values":
		return v.of.values[i]
	}
	r.items(2)
	return &tuple{items: []any{v.of.keys[i], v.of.values[i]}}
}

var escaper = strings.NewReplacer("&", "&amp;", ">", "&gt;", "<", "&lt;", "'", "&#39;", `"`, "&#34;")

// escape is MarkupSafe's.
func (r *run) escape(v any) markup {
	if m, ok := v.(markup); ok {
		return m
	}
	s := r.str(v)
	r.make(5 * len(s))
	return markup(escaper.Replace(s))
}

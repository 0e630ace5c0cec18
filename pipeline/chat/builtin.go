package chat

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ardanlabs/jinja"
)

// What one render may do at most. A long conversation takes some thousands of
// turns and a few megabytes.
const (
	maxTurns      = 1 << 20  // loop turns and macro calls
	maxDepth      = 200      // of macro calls in macro calls, and of values in values
	maxNested     = 1 << 20  // the sum of the depths of values that become part of others
	maxBytes      = 61 << 20 // that are printed, in all
	maxValue      = 16 << 20 // of a string or items of a list that is made
	builtinPrefix = "gb_"
)

// run is the state of one render.
type run struct {
	turns   int
	depth   int
	nested  int
	printed int
	message int // the message whose turn it is; -1: none
}

type (
	args   = []jinja.Value
	kwargs = map[string]jinja.Value
)

// builtin is a function that rewritten templates call.
type builtin func(r *run, a args, k kwargs) (jinja.Value, error)

// overridden are functions of templates that are the library's by name and this
// package's in fact.
var overridden = []string{"range", "namespace", "raise_exception"}

// libraryFilters are the library's own filters that do as Jinja2's.
var libraryFilters = []string{"default", "d", "length", "count", "lower", "upper", "abs", "reverse", "dictsort", "safe", "from_json", "fromjson", "wordcount", "escape", "e", "max", "min", "sum", "batch", "capitalize"}

// builtins has all of them by the name that templates call. The tables of
// filters, methods and tests have their own files.
var builtins = func() map[string]builtin {
	h := map[string]builtin{
		"range":           rangeOf,
		"namespace":       namespace,
		"raise_exception": raise,
	}
	for name, do := range map[string]builtin{
		"print": printed, "each": each, "at": at, "keep": keep, "nest": nest, "enter": enter, "leave": leave, "times": times,
	} {
		h[builtinPrefix+name] = do
	}
	for name, do := range filters {
		h[builtinPrefix+"filter_"+name] = do
	}
	for name, do := range stringMethods {
		h[builtinPrefix+"method_"+name] = method(name, jinja.Value.IsString, do)
	}
	for name, do := range listMethods {
		h[builtinPrefix+"method_"+name] = method(name, jinja.Value.IsList, do)
	}
	h[builtinPrefix+"filter_map"] = mapFilter // not in filters, which it looks into
	h[builtinPrefix+"method_update"] = method("update", jinja.Value.IsDict, update)
	for name, holds := range tests {
		for prefix, want := range map[string]bool{"is_": true, "isnot_": false} {
			h[builtinPrefix+prefix+name] = func(_ *run, a args, _ kwargs) (jinja.Value, error) {
				ok, err := holds(a[0], a[1:])
				return jinja.NewBool(ok == want), err
			}
		}
	}
	return h
}()

// Raised is the error of a template that calls raise_exception.
type Raised struct{ Message string }

func (e *Raised) Error() string { return e.Message }

func raise(_ *run, a args, _ kwargs) (jinja.Value, error) {
	return jinja.Undefined(), &Raised{strings.ReplaceAll(str(arg(a, 0)), "\n", " ")}
}

// arg returns argument i; undefined if it is not there.
func arg(a args, i int) jinja.Value {
	if i < len(a) {
		return a[i]
	}
	return jinja.Undefined()
}

// named returns argument i or, by name, one of the keyword arguments.
func named(a args, k kwargs, i int, name string) jinja.Value {
	if v, ok := k[name]; ok {
		return v
	}
	return arg(a, i)
}

func (r *run) turn(n int) error {
	if r.turns += n; r.turns > maxTurns {
		return fmt.Errorf("more than %d loop turns and macro calls", maxTurns)
	}
	return nil
}

// printed is what {{ }} prints.
func printed(r *run, a args, _ kwargs) (jinja.Value, error) {
	s := str(a[0])
	if r.printed += len(s); r.printed > maxBytes {
		return a[0], fmt.Errorf("more than %d bytes of text", maxBytes)
	}
	return jinja.NewString(s), nil
}

// each is what a loop goes through, given the number of its variables.
func each(r *run, a args, _ kwargs) (jinja.Value, error) {
	v := a[0]
	variables := int(a[1].AsInt())
	switch {
	case v.IsUndefined():
		return jinja.NewList(nil), nil
	case v.IsDict():
		if variables > 1 {
			return v, errors.New("a loop with several variables over a mapping; use its items()")
		}
		return v, r.turn(v.AsDict().Len())
	case v.IsString():
		return v, r.turn(len(v.AsString()))
	case !v.IsList():
		return v, fmt.Errorf("%s is not iterable", typeName(v))
	}
	items := v.AsList().Items
	for _, item := range items {
		if variables > 1 && (!item.IsList() || item.AsList().Len() != variables) {
			return v, fmt.Errorf("a loop with %d variables over something else", variables)
		}
	}
	// The library would see items that the body appends.
	return jinja.NewList(items[:len(items):len(items)]), r.turn(len(items))
}

func at(r *run, a args, _ kwargs) (jinja.Value, error) {
	r.message = int(a[0].AsInt())
	return a[0], nil
}

// keep bounds a value that is kept in a variable.
func keep(_ *run, a args, _ kwargs) (jinja.Value, error) {
	v := a[0]
	if v.IsString() && len(v.AsString()) > maxValue || v.IsList() && v.AsList().Len() > maxValue {
		return v, fmt.Errorf("a value of more than %d bytes or items", maxValue)
	}
	return v, nil
}

func enter(r *run, a args, _ kwargs) (jinja.Value, error) {
	if r.depth++; r.depth > maxDepth {
		return a[0], fmt.Errorf("macro calls nested more than %d deep", maxDepth)
	}
	return a[0], r.turn(1)
}

func leave(r *run, a args, _ kwargs) (jinja.Value, error) {
	r.depth--
	return a[0], nil
}

// times is a * b.
func times(_ *run, a args, _ kwargs) (jinja.Value, error) {
	x, y := a[0], a[1]
	if y.IsString() || y.IsList() {
		x, y = y, x
	}
	switch {
	case x.IsInt() && y.IsInt():
		return jinja.NewInt(x.AsInt() * y.AsInt()), nil
	case x.IsNumber() && y.IsNumber():
		return jinja.NewFloat(toFloat(x) * toFloat(y)), nil
	case !y.IsInt():
	case x.IsString():
		s, n := x.AsString(), max(y.AsInt(), 0)
		if s != "" && n > int64(maxValue/len(s)) {
			return x, fmt.Errorf("a string of more than %d bytes", maxValue)
		}
		return jinja.NewString(strings.Repeat(s, int(n))), nil
	}
	return x, fmt.Errorf("%s * %s is not possible", typeName(a[0]), typeName(a[1]))
}

func toFloat(v jinja.Value) float64 {
	if v.IsInt() {
		return float64(v.AsInt())
	}
	return v.AsFloat()
}

func rangeOf(_ *run, a args, _ kwargs) (jinja.Value, error) {
	bounds := [3]int64{0, 0, 1}
	for i, v := range a {
		if i == 3 || !v.IsInt() {
			return v, errors.New("range takes one to three integers")
		}
		bounds[i] = v.AsInt()
	}
	if len(a) == 1 {
		bounds[0], bounds[1] = 0, bounds[0]
	}
	if bounds[2] == 0 || len(a) == 0 {
		return jinja.Undefined(), errors.New("range takes one to three integers, and a step other than 0")
	}
	items := []jinja.Value{}
	for i := bounds[0]; bounds[2] > 0 && i < bounds[1] || bounds[2] < 0 && i > bounds[1]; i += bounds[2] {
		if len(items) == maxTurns {
			return jinja.Undefined(), fmt.Errorf("range of more than %d", maxTurns)
		}
		items = append(items, jinja.NewInt(i))
	}
	return jinja.NewList(items), nil
}

// namespace is an object that "set" can change inside a loop.
func namespace(_ *run, a args, k kwargs) (jinja.Value, error) {
	ns := jinja.NewDict()
	if v := arg(a, 0); v.IsDict() {
		for _, key := range v.AsDict().Keys {
			ns.AsDict().Set(key, v.AsDict().Data[key])
		}
	}
	for key, v := range k {
		ns.AsDict().Set(key, v)
	}
	return ns, nil
}

// method calls do if the receiver is of its type, else what an object has under
// the method's name.
func method(name string, isType func(jinja.Value) bool, do builtin) builtin {
	return func(r *run, a args, k kwargs) (jinja.Value, error) {
		v := a[0]
		if v.IsDict() {
			if f, ok := v.AsDict().Get(name); ok && f.IsCallable() {
				if _, big := digits(f); !big {
					return f.AsCallable().Fn(a[1:], k)
				}
			}
		}
		if isType(v) {
			return do(r, a, k)
		}
		return v, fmt.Errorf("%s has no method %q", typeName(v), name)
	}
}

// nest bounds a value that has containers in it, before it becomes part of
// another value, argument 1 if there is one. It keeps values finite and of a
// depth that a recursive walk can stand.
func nest(r *run, a args, k kwargs) (jinja.Value, error) {
	v, into := a[0], arg(a, 1)
	depth, err := r.walk(v, into, 0)
	if err != nil {
		return v, err
	}
	if r.nested += depth; r.nested > maxNested {
		return v, errors.New("values are nested too often")
	}
	return keep(r, a, k)
}

// walk returns how deep v is nested.
func (r *run) walk(v, into jinja.Value, depth int) (deepest int, err error) {
	if depth > maxDepth {
		return 0, fmt.Errorf("a value nested more than %d deep", maxDepth)
	}
	var items []jinja.Value
	switch {
	case v.IsList():
		if into.IsList() && into.AsList() == v.AsList() {
			return 0, errors.New("a list in itself")
		}
		items = v.AsList().Items
	case v.IsDict():
		d := v.AsDict()
		if into.IsDict() && into.AsDict() == d {
			return 0, errors.New("a mapping in itself")
		}
		for _, key := range d.Keys {
			items = append(items, d.Data[key])
		}
	default:
		return depth, nil
	}
	if err := r.turn(1 + len(items)/16); err != nil {
		return 0, err
	}
	deepest = depth + 1
	for _, item := range items {
		n, err := r.walk(item, into, depth+1)
		if err != nil {
			return 0, err
		}
		deepest = max(deepest, n)
	}
	return deepest, nil
}

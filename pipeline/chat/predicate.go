package chat

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"

	"github.com/ardanlabs/jinja"
)

// tests are Jinja2's tests, "x is name" or "x is name(argument)".
var tests = map[string]func(v jinja.Value, a args) (bool, error){
	"defined":     is(func(v jinja.Value) bool { return !v.IsUndefined() }),
	"undefined":   is(jinja.Value.IsUndefined),
	"none":        is(jinja.Value.IsNone),
	"boolean":     is(jinja.Value.IsBool),
	"integer":     is(func(v jinja.Value) bool { _, big := digits(v); return v.IsInt() || big }),
	"float":       is(jinja.Value.IsFloat),
	"number":      is(func(v jinja.Value) bool { _, big := digits(v); return v.IsNumber() || v.IsBool() || big }),
	"string":      is(jinja.Value.IsString),
	"mapping":     is(jinja.Value.IsDict),
	"iterable":    is(func(v jinja.Value) bool { return isSequence(v) || v.IsUndefined() }),
	"sequence":    is(func(v jinja.Value) bool { return isSequence(v) || v.IsUndefined() }),
	"callable":    is(func(v jinja.Value) bool { _, big := digits(v); return v.IsCallable() && !big || v.IsUndefined() }),
	"true":        is(func(v jinja.Value) bool { return v.IsBool() && v.AsBool() }),
	"false":       is(func(v jinja.Value) bool { return v.IsBool() && !v.AsBool() }),
	"lower":       is(func(v jinja.Value) bool { return cased(v, unicode.IsLower, unicode.IsUpper) }),
	"upper":       is(func(v jinja.Value) bool { return cased(v, unicode.IsUpper, unicode.IsLower) }),
	"odd":         func(v jinja.Value, _ args) (bool, error) { return divides(v, 2, false) },
	"even":        func(v jinja.Value, _ args) (bool, error) { return divides(v, 2, true) },
	"divisibleby": divisibleBy,
	"in":          in,
	"eq":          equal, "equalto": equal, "sameas": equal,
	"ne": func(v jinja.Value, a args) (bool, error) { ok, err := equal(v, a); return !ok, err },
	"gt": order(func(c int) bool { return c > 0 }), "greaterthan": order(func(c int) bool { return c > 0 }),
	"ge": order(func(c int) bool { return c >= 0 }),
	"lt": order(func(c int) bool { return c < 0 }), "lessthan": order(func(c int) bool { return c < 0 }),
	"le": order(func(c int) bool { return c <= 0 }),
}

// is makes a test of a property.
func is(holds func(jinja.Value) bool) func(jinja.Value, args) (bool, error) {
	return func(v jinja.Value, _ args) (bool, error) { return holds(v), nil }
}

func isSequence(v jinja.Value) bool { return v.IsList() || v.IsDict() || v.IsString() }

// cased is str.islower and str.isupper: some letters, and none of the other case.
func cased(v jinja.Value, want, other func(rune) bool) bool {
	s := str(v)
	return strings.IndexFunc(s, want) >= 0 && strings.IndexFunc(s, other) < 0
}

func divides(v jinja.Value, n int64, want bool) (bool, error) {
	if !v.IsInt() {
		return false, fmt.Errorf("remainder of %s", typeName(v))
	}
	return (v.AsInt()%n == 0) == want, nil
}

func divisibleBy(v jinja.Value, a args) (bool, error) {
	if n := arg(a, 0); n.IsInt() && n.AsInt() != 0 {
		return divides(v, n.AsInt(), true)
	}
	return false, fmt.Errorf("divisibleby takes an integer other than 0")
}

func equal(v jinja.Value, a args) (bool, error) {
	if len(a) == 0 {
		return false, fmt.Errorf("a comparison takes two values")
	}
	if v.IsNumber() && a[0].IsNumber() {
		return toFloat(v) == toFloat(a[0]), nil
	}
	return v.Equals(a[0]), nil
}

func in(v jinja.Value, a args) (bool, error) {
	c := arg(a, 0)
	if c.IsString() {
		if !v.IsString() {
			return false, fmt.Errorf("%s in a string", typeName(v))
		}
		return strings.Contains(c.AsString(), v.AsString()), nil
	}
	if c.IsDict() {
		return v.IsString() && c.AsDict().Has(v.AsString()), nil
	}
	s, err := sequence(c)
	if err != nil {
		return false, err
	}
	for _, item := range s {
		if ok, _ := equal(item, args{v}); ok {
			return true, nil
		}
	}
	return false, nil
}

// order makes a test of the order of two numbers or two strings.
func order(holds func(c int) bool) func(jinja.Value, args) (bool, error) {
	return func(v jinja.Value, a args) (bool, error) {
		w := arg(a, 0)
		switch {
		case v.IsNumber() && w.IsNumber():
			return holds(cmp.Compare(toFloat(v), toFloat(w))), nil
		case v.IsString() && w.IsString():
			return holds(strings.Compare(v.AsString(), w.AsString())), nil
		}
		return false, fmt.Errorf("%s and %s have no order", typeName(v), typeName(w))
	}
}

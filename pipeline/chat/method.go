package chat

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/ardanlabs/jinja"
)

// stringMethods are Python's methods of strings, with the string as argument 0.
var stringMethods = map[string]builtin{
	"strip":      func(_ *run, a args, _ kwargs) (jinja.Value, error) { return trim(a, true, true) },
	"lstrip":     func(_ *run, a args, _ kwargs) (jinja.Value, error) { return trim(a, true, false) },
	"rstrip":     func(_ *run, a args, _ kwargs) (jinja.Value, error) { return trim(a, false, true) },
	"split":      func(_ *run, a args, k kwargs) (jinja.Value, error) { return split(a, k, false) },
	"rsplit":     func(_ *run, a args, k kwargs) (jinja.Value, error) { return split(a, k, true) },
	"splitlines": splitLines,
	"startswith": func(_ *run, a args, _ kwargs) (jinja.Value, error) { return affix(a, strings.HasPrefix) },
	"endswith":   func(_ *run, a args, _ kwargs) (jinja.Value, error) { return affix(a, strings.HasSuffix) },
	"replace":    replace,
	"join":       func(_ *run, a args, _ kwargs) (jinja.Value, error) { return join(arg(a, 1), a[0].AsString()) },
	"isdigit":    all(unicode.IsDigit),
	"isalpha":    all(unicode.IsLetter),
	"isspace":    all(isPythonSpace),
	"format":     unsupported("format"),
	"title":      func(_ *run, a args, _ kwargs) (jinja.Value, error) { return title(a) },
	"removeprefix": func(_ *run, a args, _ kwargs) (jinja.Value, error) {
		return jinja.NewString(strings.TrimPrefix(a[0].AsString(), str(arg(a, 1)))), nil
	},
	"removesuffix": func(_ *run, a args, _ kwargs) (jinja.Value, error) {
		return jinja.NewString(strings.TrimSuffix(a[0].AsString(), str(arg(a, 1)))), nil
	},
}

// listMethods are the methods that put values into lists.
var listMethods = map[string]builtin{
	"append": func(r *run, a args, _ kwargs) (jinja.Value, error) {
		return jinja.None(), into(r, a[0], arg(a, 1), a[0].AsList().Len())
	},
	"insert": func(r *run, a args, _ kwargs) (jinja.Value, error) {
		if !arg(a, 1).IsInt() {
			return a[0], errors.New("insert takes an index and a value")
		}
		n := a[0].AsList().Len()
		i := int(a[1].AsInt())
		if i < 0 {
			i += n
		}
		return jinja.None(), into(r, a[0], arg(a, 2), min(max(i, 0), n))
	},
	"extend": func(r *run, a args, _ kwargs) (jinja.Value, error) {
		if !arg(a, 1).IsList() {
			return a[0], errors.New("extend takes a list")
		}
		for _, v := range a[1].AsList().Items {
			if err := into(r, a[0], v, a[0].AsList().Len()); err != nil {
				return a[0], err
			}
		}
		return jinja.None(), nil
	},
}

// into puts v into a list at index i.
func into(r *run, list, v jinja.Value, i int) error {
	if _, err := nest(r, args{v, list}, nil); err != nil {
		return err
	}
	l := list.AsList()
	if err := r.turn(1 + (l.Len()-i)/64); err != nil {
		return err
	}
	l.Append(jinja.None())
	copy(l.Items[i+1:], l.Items[i:])
	l.Items[i] = v
	return nil
}

func update(r *run, a args, k kwargs) (jinja.Value, error) {
	d := a[0].AsDict()
	put := func(key string, v jinja.Value) error {
		if _, err := nest(r, args{v, a[0]}, nil); err != nil {
			return err
		}
		d.Set(key, v)
		return nil
	}
	if other := arg(a, 1); other.IsDict() {
		for _, key := range other.AsDict().OrderedKeys() {
			if err := put(key, other.AsDict().Data[key]); err != nil {
				return a[0], err
			}
		}
	}
	for key, v := range k {
		if err := put(key, v); err != nil {
			return a[0], err
		}
	}
	return jinja.None(), nil
}

func unsupported(name string) builtin {
	return func(_ *run, a args, _ kwargs) (jinja.Value, error) {
		return jinja.Undefined(), fmt.Errorf("%s is not supported", name)
	}
}

// isPythonSpace tells what str.strip() takes off.
func isPythonSpace(r rune) bool {
	return unicode.IsSpace(r) || 0x1c <= r && r <= 0x1f
}

// trim strips a string of white space, or of the characters of argument 1.
func trim(a args, left, right bool) (jinja.Value, error) {
	drop := isPythonSpace
	if chars := arg(a, 1); chars.IsString() {
		drop = func(r rune) bool { return strings.ContainsRune(chars.AsString(), r) }
	}
	s := str(a[0])
	if left {
		s = strings.TrimLeftFunc(s, drop)
	}
	if right {
		s = strings.TrimRightFunc(s, drop)
	}
	return jinja.NewString(s), nil
}

// split is str.split and str.rsplit.
func split(a args, k kwargs, fromRight bool) (jinja.Value, error) {
	s, sep, limit := a[0].AsString(), named(a, k, 1, "sep"), -1
	if n := named(a, k, 2, "maxsplit"); n.IsInt() {
		limit = int(n.AsInt())
	}
	var parts []string
	switch {
	case !sep.IsString() && limit >= 0:
		return a[0], errors.New("split: maxsplit without a separator is not supported")
	case !sep.IsString():
		parts = strings.FieldsFunc(s, isPythonSpace)
	case sep.AsString() == "":
		return a[0], errors.New("split: empty separator")
	case fromRight && limit >= 0:
		for ; limit > 0; limit-- {
			i := strings.LastIndex(s, sep.AsString())
			if i < 0 {
				break
			}
			parts = append(parts, s[i+len(sep.AsString()):])
			s = s[:i]
		}
		parts = append(parts, s)
		slices.Reverse(parts)
	case limit >= 0:
		parts = strings.SplitN(s, sep.AsString(), limit+1)
	default:
		parts = strings.Split(s, sep.AsString())
	}
	return stringList(parts), nil
}

func stringList(parts []string) jinja.Value {
	items := make([]jinja.Value, len(parts))
	for i, p := range parts {
		items[i] = jinja.NewString(p)
	}
	return jinja.NewList(items)
}

func splitLines(_ *run, a args, _ kwargs) (jinja.Value, error) {
	s := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(a[0].AsString())
	if s == "" {
		return jinja.NewList(nil), nil
	}
	return stringList(strings.Split(strings.TrimSuffix(s, "\n"), "\n")), nil
}

// affix is startswith and endswith, with a string or several.
func affix(a args, has func(s, affix string) bool) (jinja.Value, error) {
	choices := args{arg(a, 1)}
	if choices[0].IsList() {
		choices = choices[0].AsList().Items
	}
	for _, c := range choices {
		if !c.IsString() {
			return a[0], fmt.Errorf("startswith and endswith take a string, not %s", typeName(c))
		}
		if has(a[0].AsString(), c.AsString()) {
			return jinja.NewBool(true), nil
		}
	}
	return jinja.NewBool(false), nil
}

// replace is str.replace and the filter.
func replace(_ *run, a args, k kwargs) (jinja.Value, error) {
	s, old, by := str(a[0]), str(arg(a, 1)), str(arg(a, 2))
	if len(a) < 3 {
		return a[0], errors.New("replace takes what to replace and by what")
	}
	limit := -1
	if n := named(a, k, 3, "count"); n.IsInt() {
		limit = int(n.AsInt())
	}
	if len(by) > len(old) && int64(strings.Count(s, old))*int64(len(by)) > maxValue {
		return a[0], fmt.Errorf("replace: a string of more than %d bytes", maxValue)
	}
	return jinja.NewString(strings.Replace(s, old, by, limit)), nil
}

func join(list jinja.Value, sep string) (jinja.Value, error) {
	if !list.IsList() {
		return list, fmt.Errorf("join takes a list, not %s", typeName(list))
	}
	var b strings.Builder
	for i, item := range list.AsList().Items {
		if i > 0 {
			b.WriteString(sep)
		}
		b.WriteString(str(item))
		if b.Len() > maxValue {
			return list, fmt.Errorf("join: a string of more than %d bytes", maxValue)
		}
	}
	return jinja.NewString(b.String()), nil
}

// all is a method that tells whether a string is not empty and all of a kind.
func all(kind func(rune) bool) builtin {
	return func(_ *run, a args, _ kwargs) (jinja.Value, error) {
		s := a[0].AsString()
		return jinja.NewBool(s != "" && strings.IndexFunc(s, func(r rune) bool { return !kind(r) }) < 0), nil
	}
}

// title makes the first letter of each word upper case and the others lower.
func title(a args) (jinja.Value, error) {
	letter := false
	return jinja.NewString(strings.Map(func(r rune) rune {
		before := letter
		letter = unicode.IsLetter(r)
		if letter && !before {
			return unicode.ToTitle(r)
		}
		return unicode.ToLower(r)
	}, str(a[0]))), nil
}

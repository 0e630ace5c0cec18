package chat

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ardanlabs/jinja"
)

// filters are Jinja2's filters where the library's differ or are missing, with
// the value as argument 0.
var filters = map[string]builtin{
	"tojson":     toJSON,
	"items":      items,
	"string":     func(_ *run, a args, _ kwargs) (jinja.Value, error) { return jinja.NewString(str(a[0])), nil },
	"trim":       func(_ *run, a args, _ kwargs) (jinja.Value, error) { return trim(a, true, true) },
	"title":      func(_ *run, a args, _ kwargs) (jinja.Value, error) { return title(a) },
	"replace":    replace,
	"join":       joinFilter,
	"list":       list,
	"first":      first,
	"last":       last,
	"int":        toInt,
	"float":      toFloatFilter,
	"round":      round,
	"sort":       sortFilter,
	"unique":     unique,
	"indent":     indent,
	"select":     func(_ *run, a args, _ kwargs) (jinja.Value, error) { return choose(a, false, true) },
	"reject":     func(_ *run, a args, _ kwargs) (jinja.Value, error) { return choose(a, false, false) },
	"selectattr": func(_ *run, a args, _ kwargs) (jinja.Value, error) { return choose(a, true, true) },
	"rejectattr": func(_ *run, a args, _ kwargs) (jinja.Value, error) { return choose(a, true, false) },
}

// toJSON is json.dumps as transformers gives it to templates: not escaped to
// ASCII unless asked for.
func toJSON(_ *run, a args, k kwargs) (jinja.Value, error) {
	style := jsonStyle{item: ", ", key: ": ", ascii: named(a, k, 1, "ensure_ascii").IsTruthy(), sorted: named(a, k, 4, "sort_keys").IsTruthy()}
	switch v := named(a, k, 2, "indent"); {
	case v.IsInt() && v.AsInt() >= 0 && v.AsInt() <= 64:
		style.indent, style.lines, style.item = strings.Repeat(" ", int(v.AsInt())), true, ","
	case v.IsString() && len(v.AsString()) <= 64:
		style.indent, style.lines, style.item = v.AsString(), true, ","
	case !v.IsNone() && !v.IsUndefined():
		return v, errors.New("tojson: indent must be 0 to 64")
	}
	if v := named(a, k, 3, "separators"); v.IsList() {
		s := v.AsList().Items
		if len(s) != 2 || !s[0].IsString() || !s[1].IsString() {
			return v, errors.New("tojson: separators must be two strings")
		}
		style.item, style.key = s[0].AsString(), s[1].AsString()
	}
	var b strings.Builder
	if err := style.write(&b, a[0], 0); err != nil {
		return a[0], err
	}
	return jinja.NewString(b.String()), nil
}

func items(_ *run, a args, _ kwargs) (jinja.Value, error) {
	if a[0].IsUndefined() {
		return jinja.NewList(nil), nil
	}
	if !a[0].IsDict() {
		return a[0], fmt.Errorf("items of %s, not of a mapping", typeName(a[0]))
	}
	d := a[0].AsDict()
	pairs := make([]jinja.Value, 0, d.Len())
	for _, key := range d.Keys {
		pairs = append(pairs, jinja.NewList([]jinja.Value{jinja.NewString(key), d.Data[key]}))
	}
	return jinja.NewList(pairs), nil
}

// sequence returns the items of a list, the characters of a string or the keys
// of a mapping.
func sequence(v jinja.Value) ([]jinja.Value, error) {
	switch {
	case v.IsUndefined():
		return nil, nil
	case v.IsList():
		return v.AsList().Items, nil
	case v.IsString():
		return stringList(strings.Split(v.AsString(), "")).AsList().Items, nil
	case v.IsDict():
		return stringList(v.AsDict().Keys).AsList().Items, nil
	}
	return nil, fmt.Errorf("%s is not iterable", typeName(v))
}

func list(_ *run, a args, _ kwargs) (jinja.Value, error) {
	s, err := sequence(a[0])
	return jinja.NewList(slices.Clone(s)), err
}

func first(_ *run, a args, _ kwargs) (jinja.Value, error) {
	s, err := sequence(a[0])
	return arg(s, 0), err
}

func last(_ *run, a args, _ kwargs) (jinja.Value, error) {
	s, err := sequence(a[0])
	if len(s) == 0 {
		return jinja.Undefined(), err
	}
	return s[len(s)-1], nil
}

func joinFilter(_ *run, a args, k kwargs) (jinja.Value, error) {
	s, err := sequence(a[0])
	if err != nil {
		return a[0], err
	}
	if attribute := named(a, k, 2, "attribute"); attribute.IsString() {
		if s, err = attributes(s, attribute.AsString(), jinja.Undefined()); err != nil {
			return a[0], err
		}
	}
	return join(jinja.NewList(s), str(named(a, k, 1, "d")))
}

// attributes returns an attribute, "a" or "a.b", of each item.
func attributes(items []jinja.Value, path string, otherwise jinja.Value) ([]jinja.Value, error) {
	out := make([]jinja.Value, len(items))
	for i, v := range items {
		for key := range strings.SplitSeq(path, ".") {
			switch {
			case v.IsDict():
				v, _ = v.AsDict().Get(key)
			case v.IsList():
				n, err := strconv.Atoi(key)
				if err != nil || n < 0 {
					return nil, fmt.Errorf("attribute %q of a list", key)
				}
				v = arg(v.AsList().Items, n)
			default:
				v = jinja.Undefined()
			}
		}
		if v.IsUndefined() {
			v = otherwise
		}
		out[i] = v
	}
	return out, nil
}

// mapFilter is map: an attribute of each item, or one of the filters of each.
func mapFilter(r *run, a args, k kwargs) (jinja.Value, error) {
	s, err := sequence(a[0])
	if err != nil {
		return a[0], err
	}
	if attribute, ok := k["attribute"]; ok {
		s, err = attributes(s, str(attribute), k["default"])
		return jinja.NewList(s), err
	}
	name := str(arg(a, 1))
	do := filters[name]
	if do == nil {
		return a[0], fmt.Errorf("map with filter %q is not supported", name)
	}
	out := make([]jinja.Value, len(s))
	for i, v := range s {
		if out[i], err = do(r, append(args{v}, a[2:]...), k); err != nil {
			return a[0], err
		}
	}
	return jinja.NewList(out), nil
}

// choose is select, reject, selectattr and rejectattr.
func choose(a args, attribute, want bool) (jinja.Value, error) {
	s, err := sequence(a[0])
	if err != nil {
		return a[0], err
	}
	values, rest := s, a[1:]
	if attribute {
		if len(rest) == 0 || !rest[0].IsString() {
			return a[0], errors.New("selectattr and rejectattr take the name of an attribute")
		}
		if values, err = attributes(s, rest[0].AsString(), jinja.Undefined()); err != nil {
			return a[0], err
		}
		rest = rest[1:]
	}
	holds := func(v jinja.Value, _ args) (bool, error) { return v.IsTruthy(), nil }
	if len(rest) > 0 {
		name := str(rest[0])
		if holds = tests[name]; holds == nil {
			return a[0], fmt.Errorf("test %q is not known", name)
		}
		rest = rest[1:]
	}
	out := []jinja.Value{}
	for i, v := range values {
		ok, err := holds(v, rest)
		if err != nil {
			return a[0], err
		}
		if ok == want {
			out = append(out, s[i])
		}
	}
	return jinja.NewList(out), nil
}

func toInt(_ *run, a args, k kwargs) (jinja.Value, error) {
	otherwise := named(a, k, 1, "default")
	if otherwise.IsUndefined() {
		otherwise = jinja.NewInt(0)
	}
	switch v := a[0]; {
	case v.IsInt():
		return v, nil
	case v.IsBool():
		if v.AsBool() {
			return jinja.NewInt(1), nil
		}
		return jinja.NewInt(0), nil
	case v.IsFloat() && math.Abs(v.AsFloat()) < 1<<62:
		return jinja.NewInt(int64(v.AsFloat())), nil
	case v.IsString():
		s := strings.ReplaceAll(strings.TrimSpace(v.AsString()), "_", "")
		if n, err := strconv.ParseInt(s, 10, 64); err == nil {
			return jinja.NewInt(n), nil
		}
		if f, err := strconv.ParseFloat(s, 64); err == nil && math.Abs(f) < 1<<62 {
			return jinja.NewInt(int64(f)), nil
		}
	}
	return otherwise, nil
}

func toFloatFilter(_ *run, a args, k kwargs) (jinja.Value, error) {
	switch v := a[0]; {
	case v.IsNumber():
		return jinja.NewFloat(toFloat(v)), nil
	case v.IsString():
		if f, err := strconv.ParseFloat(strings.TrimSpace(v.AsString()), 64); err == nil {
			return jinja.NewFloat(f), nil
		}
	}
	if otherwise := named(a, k, 1, "default"); !otherwise.IsUndefined() {
		return otherwise, nil
	}
	return jinja.NewFloat(0), nil
}

func round(_ *run, a args, k kwargs) (jinja.Value, error) {
	if !a[0].IsNumber() {
		return a[0], fmt.Errorf("round of %s", typeName(a[0]))
	}
	digits := named(a, k, 1, "precision")
	p := 0
	if digits.IsInt() {
		p = int(min(max(digits.AsInt(), -300), 300))
	}
	f := toFloat(a[0])
	switch method := str(named(a, k, 2, "method")); method {
	case "", "common": // correctly rounded, ties to even, as Python does
		if p < 0 {
			scale := math.Pow10(-p)
			return jinja.NewFloat(math.RoundToEven(f/scale) * scale), nil
		}
		f, _ = strconv.ParseFloat(strconv.FormatFloat(f, 'f', p, 64), 64)
		return jinja.NewFloat(f), nil
	case "ceil":
		return jinja.NewFloat(math.Ceil(f*math.Pow10(p)) / math.Pow10(p)), nil
	case "floor":
		return jinja.NewFloat(math.Floor(f*math.Pow10(p)) / math.Pow10(p)), nil
	default:
		return a[0], fmt.Errorf("round: method %q is not known", method)
	}
}

func sortFilter(_ *run, a args, k kwargs) (jinja.Value, error) {
	s, err := sequence(a[0])
	if err != nil {
		return a[0], err
	}
	keys := s
	if attribute := named(a, k, 3, "attribute"); attribute.IsString() {
		if keys, err = attributes(s, attribute.AsString(), jinja.Undefined()); err != nil {
			return a[0], err
		}
	}
	order := make([]int, len(s))
	for i, v := range keys {
		if !v.IsNumber() && !v.IsString() || v.IsString() != keys[0].IsString() {
			return a[0], fmt.Errorf("sort: %s beside %s", typeName(v), typeName(keys[0]))
		}
		order[i] = i
	}
	fold := !named(a, k, 2, "case_sensitive").IsTruthy()
	reverse := named(a, k, 1, "reverse").IsTruthy()
	slices.SortStableFunc(order, func(i, j int) int {
		if reverse {
			i, j = j, i
		}
		x, y := keys[i], keys[j]
		if x.IsNumber() {
			return cmp.Compare(toFloat(x), toFloat(y))
		}
		if fold {
			return strings.Compare(strings.ToLower(x.AsString()), strings.ToLower(y.AsString()))
		}
		return strings.Compare(x.AsString(), y.AsString())
	})
	out := make([]jinja.Value, len(s))
	for i, k := range order {
		out[i] = s[k]
	}
	return jinja.NewList(out), nil
}

func unique(_ *run, a args, _ kwargs) (jinja.Value, error) {
	s, err := sequence(a[0])
	if err != nil {
		return a[0], err
	}
	out := []jinja.Value{}
	seen := make(map[string]bool)
	for _, v := range s {
		var b strings.Builder
		if v.IsString() {
			v = jinja.NewString(v.AsString())
			b.WriteString(strings.ToLower(v.AsString()))
		} else {
			repr(&b, v)
			b.WriteByte(0)
		}
		if !seen[b.String()] {
			seen[b.String()] = true
			out = append(out, v)
		}
	}
	return jinja.NewList(out), nil
}

func indent(_ *run, a args, k kwargs) (jinja.Value, error) {
	pad := "    "
	switch w := named(a, k, 1, "width"); {
	case w.IsInt() && w.AsInt() >= 0 && w.AsInt() <= 1000:
		pad = strings.Repeat(" ", int(w.AsInt()))
	case w.IsString() && len(w.AsString()) <= 1000:
		pad = w.AsString()
	case !w.IsUndefined():
		return w, errors.New("indent: width must be 0 to 1000")
	}
	onFirst := named(a, k, 2, "first").IsTruthy()
	blank := named(a, k, 3, "blank").IsTruthy()
	lines := strings.Split(str(a[0]), "\n")
	for i, line := range lines {
		if i == 0 && onFirst || i > 0 && (blank || line != "") {
			lines[i] = pad + line
		}
	}
	out := strings.Join(lines, "\n")
	if len(out) > maxBytes {
		return a[0], errors.New("indent: the text is too long")
	}
	return jinja.NewString(out), nil
}

package jinja

import (
	"math"
	"math/big"
	"slices"
	"strings"
)

// filters are what may follow "|". Those of sequences are in sequence.go.
var filters map[string]*function

func init() { // not in the declaration: functions look into the tables
	filters = methodTable(map[string]declared{
		"abs": {"v", func(r *run, a []any) any {
			use(a[0])
			if !isNumber(a[0]) {
				typeError("bad operand type for abs(): '%s'", typeName(a[0]))
			}
			if r.less(a[0], 0) {
				return r.binary("-", 0, a[0])
			}
			if f, ok := a[0].(float64); ok {
				return math.Abs(f)
			}
			return r.binary("+", 0, a[0])
		}},
		"attr": {"v name", func(r *run, a []any) any {
			name := r.str(a[1])
			use(a[0])
			if v, ok := r.ownAttribute(a[0], name); ok {
				return v
			}
			return &undefined{text: "'" + objectName(a[0]) + "' has no attribute '" + name + "'"}
		}},
		"default": {"v default_value? boolean?", byDefault},
		"d":       {"v default_value? boolean?", byDefault},
		"escape":  {"v", func(r *run, a []any) any { return r.escape(a[0]) }},
		"e":       {"v", func(r *run, a []any) any { return r.escape(a[0]) }},
		"forceescape": {"v", func(r *run, a []any) any {
			return r.escape(r.str(a[0]))
		}},
		"safe": {"v", func(r *run, a []any) any { return markup(r.str(a[0])) }},
		"string": {"v", func(r *run, a []any) any {
			if _, ok := a[0].(markup); ok {
				return a[0]
			}
			return r.str(a[0])
		}},
		"float": {"v default?", func(r *run, a []any) any {
			if f, ok := r.toFloat(a[0]); ok {
				return f
			}
			return or(a[1], 0.0)
		}},
		"int":   {"v default? base?", toInt},
		"round": {"v precision? method?", round},
		"format": {"v * **", func(r *run, a []any) any {
			pos, kw := a[1].([]any), a[2].(*kwargs)
			if len(pos) > 0 && len(kw.names) > 0 {
				fail("can't handle positional and keyword arguments at the same time")
			}
			var args any = &tuple{items: pos}
			if len(kw.names) > 0 {
				args = r.newDict(missing, kw)
			}
			return r.binary("%", softText(r, a[0]), args)
		}},
		"tojson": {"v ensure_ascii? indent? separators? sort_keys?", toJSON},

		"upper":      {"v", onText("upper")},
		"lower":      {"v", onText("lower")},
		"capitalize": {"v", onText("capitalize")},
		"center": {"v width?", func(r *run, a []any) any {
			return callMethod(r, softText(r, a[0]), "center",
				or(a[1], 80))
		}},
		"trim": {"v chars?", func(r *run, a []any) any {
			return callMethod(r, softText(r, a[0]), "strip", orNone(a[1]))
		}},
		"replace": {"v old new count?", func(r *run, a []any) any {
			n := or(orNone(a[3]), -1)
			if n == nil {
				n = -1
			}
			return callMethod(r, r.str(a[0]), "replace", r.str(a[1]), r.str(a[2]), n)
		}},
		"title": {"v", func(r *run, a []any) any {
			s, _ := textOf(softText(r, a[0]))
			r.make(2 * len(s))
			return titleWords(s)
		}},
		"indent":    {"v width? first? blank?", indent},
		"truncate":  {"v length? killwords? end? leeway?", truncate},
		"wordcount": {"v", func(r *run, a []any) any { s := r.str(a[0]); r.look(len(s)); return wordCount(s) }},
		"wordwrap":  {"v width? break_long_words? wrapstring? break_on_hyphens?", wordWrap},
		"striptags": {"v", func(r *run, a []any) any { s := r.str(a[0]); r.make(len(s)); return stripTags(s) }},
		"urlencode": {"v", urlEncode},
		"filesizeformat": {"v binary?", func(r *run, a []any) any {
			f, ok := r.toFloat(a[0])
			if !ok {
				fail("ValueError: not a size: %s", r.repr(a[0]))
			}
			return fileSize(f, truth(or(a[1], false)))
		}},

		"length":     {"v", func(r *run, a []any) any { return r.length(a[0]) }},
		"count":      {"v", func(r *run, a []any) any { return r.length(a[0]) }},
		"list":       {"v", func(r *run, a []any) any { return &List{slices.Clone(r.collect(a[0]))} }},
		"items":      {"v", itemsOf},
		"first":      {"v", first},
		"last":       {"v", last},
		"reverse":    {"v", reverse},
		"join":       {"v d? attribute?", join},
		"sort":       {"v reverse? case_sensitive? attribute?", sorted},
		"dictsort":   {"v case_sensitive? by? reverse?", dictSort},
		"unique":     {"v case_sensitive? attribute?", unique},
		"min":        {"v case_sensitive? attribute?", func(r *run, a []any) any { return extreme(r, a, false) }},
		"max":        {"v case_sensitive? attribute?", func(r *run, a []any) any { return extreme(r, a, true) }},
		"sum":        {"v attribute? start?", sum},
		"batch":      {"v linecount fill_with?", batch},
		"slice":      {"v slices fill_with?", sliceInto},
		"groupby":    {"v attribute default? case_sensitive?", groupBy},
		"map":        {"v * **", mapped},
		"select":     {"v * **", func(r *run, a []any) any { return selected(r, a, true, false) }},
		"reject":     {"v * **", func(r *run, a []any) any { return selected(r, a, false, false) }},
		"selectattr": {"v * **", func(r *run, a []any) any { return selected(r, a, true, true) }},
		"rejectattr": {"v * **", func(r *run, a []any) any { return selected(r, a, false, true) }},
	})
}

func byDefault(_ *run, a []any) any {
	if isUndefined(a[0]) || truth(or(a[2], false)) && !truth(a[0]) {
		return or(a[1], "")
	}
	return a[0]
}

// softText is str, but what is safe stays so.
func softText(r *run, v any) any {
	if m, ok := v.(markup); ok {
		return m
	}
	return r.str(v)
}

// onText is the filter that calls a method of strings.
func onText(name string) func(*run, []any) any {
	return func(r *run, a []any) any { return callMethod(r, softText(r, a[0]), name) }
}

func callMethod(r *run, self any, name string, args ...any) any {
	return methodOf(self, name).call(r, append([]any{self}, args...), kwargs{})
}

// toFloat is Python's float.
func (r *run) toFloat(v any) (float64, bool) {
	use(v)
	if s, ok := textOf(v); ok {
		return parseFloat(s)
	}
	return floatOf(v)
}

func toInt(r *run, a []any) any {
	otherwise := or(a[1], 0)
	use(a[0])
	if s, ok := textOf(a[0]); ok {
		if i, ok := parseInt(s, index(or(a[2], 10))); ok {
			return i
		}
	}
	switch v := a[0].(type) {
	case int:
		return v
	case *big.Int:
		return v
	}
	f, ok := r.toFloat(a[0])
	if !ok || math.IsNaN(f) {
		return otherwise
	}
	if math.IsInf(f, 0) {
		if _, text := textOf(a[0]); text {
			return otherwise
		}
		fail("OverflowError: cannot convert float infinity to integer")
	}
	i, _ := big.NewFloat(f).Int(nil)
	return normalInt(i)
}

func round(r *run, a []any) any {
	precision, method := index(or(a[1], 0)), r.str(or(a[2], "common"))
	use(a[0])
	if method == "common" {
		return r.round(a[0], precision)
	}
	if method != "ceil" && method != "floor" {
		fail("method must be common, ceil or floor")
	}
	unit := r.binary("**", 10, precision)
	f, ok := floatOf(r.binary("*", a[0], unit))
	if !ok {
		typeError("must be real number, not %s", typeName(a[0]))
	}
	if f = math.Floor(f); method == "ceil" {
		x, _ := floatOf(r.binary("*", a[0], unit))
		f = math.Ceil(x)
	}
	if math.IsInf(f, 0) || math.IsNaN(f) {
		fail("OverflowError: cannot convert float infinity to integer")
	}
	i, _ := big.NewFloat(f).Int(nil)
	return r.binary("/", normalInt(i), unit)
}

func toJSON(r *run, a []any) any {
	s := &jsonStyle{ascii: truth(or(a[1], false)), sorted: truth(or(a[4], false)), comma: ", ", colon: ": "}
	switch in := orNone(a[2]); in := in.(type) {
	case nil:
	case string:
		s.indented, s.indent, s.comma = true, in, ","
	default:
		n := max(index(in), 0)
		r.make(n)
		s.indented, s.indent, s.comma = true, strings.Repeat(" ", n), ","
	}
	if sep := orNone(a[3]); sep != nil {
		pair := r.collect(sep)
		if len(pair) != 2 {
			fail("ValueError: separators must be two strings")
		}
		comma, ok1 := textOf(pair[0])
		colon, ok2 := textOf(pair[1])
		if !ok1 || !ok2 {
			typeError("separators must be two strings")
		}
		s.comma, s.colon = comma, colon
	}
	return string(r.appendJSON(nil, a[0], s, 0))
}

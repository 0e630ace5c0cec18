package jinja

import "math/big"

// tests are what may follow "is".
var tests map[string]*function

func init() { // not in the declaration: functions look into the tables
	tests = methodTable(map[string]declared{
		"defined":   {"v", func(_ *run, a []any) any { return !isUndefined(a[0]) }},
		"undefined": {"v", func(_ *run, a []any) any { return isUndefined(a[0]) }},
		"none":      {"v", func(_ *run, a []any) any { return a[0] == nil }},
		"true":      {"v", func(_ *run, a []any) any { b, ok := a[0].(bool); return ok && b }},
		"false":     {"v", func(_ *run, a []any) any { b, ok := a[0].(bool); return ok && !b }},
		"boolean":   {"v", func(_ *run, a []any) any { _, ok := a[0].(bool); return ok }},
		"integer": {"v", func(_ *run, a []any) any {
			switch a[0].(type) {
			case int, *big.Int:
				return true
			}
			return false
		}},
		"float":  {"v", func(_ *run, a []any) any { return isFloat(a[0]) }},
		"number": {"v", func(_ *run, a []any) any { return isNumber(a[0]) }},
		"string": {"v", func(_ *run, a []any) any { _, ok := textOf(a[0]); return ok }},
		"mapping": {"v", func(_ *run, a []any) any {
			_, ok := a[0].(*Dict)
			return ok
		}},
		"sequence": {"v", func(_ *run, a []any) any {
			switch a[0].(type) {
			case string, markup, *List, *tuple, *Dict, span, *undefined:
				return true
			}
			return false
		}},
		"iterable": {"v", func(r *run, a []any) any {
			if _, ok := a[0].(*loopContext); ok {
				return true
			}
			_, ok := r.iterator(a[0])
			return ok
		}},
		"callable": {"v", func(_ *run, a []any) any {
			switch a[0].(type) {
			case *function, method, *macro, *undefined, *loopContext:
				return true
			}
			return false
		}},
		"escaped": {"v", func(_ *run, a []any) any { _, ok := a[0].(markup); return ok }},
		"odd":     {"v", func(r *run, a []any) any { return r.equal(r.binary("%", a[0], 2), 1) }},
		"even":    {"v", func(r *run, a []any) any { return r.equal(r.binary("%", a[0], 2), 0) }},
		"divisibleby": {"v num", func(r *run, a []any) any {
			return r.equal(r.binary("%", a[0], a[1]), 0)
		}},
		"filter":      {"v", func(r *run, a []any) any { return filters[r.str(a[0])] != nil }},
		"test":        {"v", func(r *run, a []any) any { return tests[r.str(a[0])] != nil }},
		"lower":       {"v", func(r *run, a []any) any { return isLower(r.str(a[0])) }},
		"upper":       {"v", func(r *run, a []any) any { return isUpper(r.str(a[0])) }},
		"sameas":      {"v other", func(_ *run, a []any) any { return identical(a[0], a[1]) }},
		"in":          {"v seq", func(r *run, a []any) any { return r.contains(a[1], a[0]) }},
		"eq":          comparing("=="),
		"equalto":     comparing("=="),
		"==":          comparing("=="),
		"ne":          comparing("!="),
		"!=":          comparing("!="),
		"lt":          comparing("<"),
		"lessthan":    comparing("<"),
		"<":           comparing("<"),
		"le":          comparing("<="),
		"<=":          comparing("<="),
		"gt":          comparing(">"),
		"greaterthan": comparing(">"),
		">":           comparing(">"),
		"ge":          comparing(">="),
		">=":          comparing(">="),
	})
}

func comparing(op string) declared {
	return declared{"v other", func(r *run, a []any) any { return r.compare(op, a[0], a[1]) }}
}

func isUndefined(v any) bool { _, ok := v.(*undefined); return ok }

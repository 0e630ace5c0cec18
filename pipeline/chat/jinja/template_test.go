package jinja

import (
	"context"
	"strings"
	"testing"
)

// render is what a template makes of variables in JSON.
func render(source, vars string) (string, error) {
	t, err := Parse(source)
	if err != nil {
		return "", err
	}
	given := map[string]any{}
	if vars != "" {
		v, err := ParseJSON([]byte(vars))
		if err != nil {
			return "", err
		}
		d := v.(*Dict)
		for i := range d.Len() {
			k, x := d.At(i)
			given[k.(string)] = x
		}
	}
	return t.Render(context.Background(), given, len(vars))
}

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct{ source, want string }{
		{"{{ x | frobnicate }}", `line 1: filter "frobnicate" is not known`},
		{"\n{{ x is frob }}", `line 2: test "frob" is not known`},
		{"{% include 'x' %}", `statement "include" is not supported`},
		{"{% frob %}", `unknown statement "frob"`},
		{"{% if x %}", "endif is missing"},
		{"{% endif %}", `"endif" closes nothing`},
		{"{% for x in y %}{% endif %}", `"endif" closes nothing`},
		{"{% else %}", `"else" closes nothing`},
		{"{{ x", `expected "}}"`},
		{"{% macro f(x %}{% endmacro %}", `expected ")"`},
		{"{{ 'x }}", "a string without its end"},
		{"{{ }}", "an expression is missing"},
		{"{{ x ! y }}", "unexpected char"},
		{"{% break %}", `"break" outside a loop`},
		{"{% for x in y %}{% macro f() %}{% break %}{% endmacro %}{% endfor %}", `"break" outside a loop`},
		{"{% macro f %}{% endmacro %}", `"macro" needs`},
		{"{# x", "Missing end of comment"},
		{"{% raw %}x", "Missing end of raw"},
		{"{{ (1 }}", `unexpected "}", expected ")"`},
		{"{{ 1) }}", `unexpected ")"`},
		{"{% set true = 1 %}", "can't assign"},
		{"{{ f(a=1, 2) }}", "invalid order of arguments"},
		{"{{ f(a=1, a=2) }}", "invalid order of arguments"},
		{"{% call f %}{% endcall %}", "expected a call"},
		{"{{ 'a' '\\N{DASH}' }}", "by name"},
		{"{{ '\\xg1' }}", "a wrong escape"},
		{"{{ x is string is string }}", "follow each other"},
		{"{{ 1if }}", "unexpected"},
		{"{{ " + strings.Repeat("(", 1000) + "x" + strings.Repeat(")", 1000) + " }}", "nested more than"},
		{"{{ " + strings.Repeat("-", 1000) + "1 }}", "nested more than"},
		{"{{ " + strings.Repeat("not ", 1000) + "1 }}", "nested more than"},
		{"{{ x" + strings.Repeat(".a", 100000) + " }}", "in a row"},
		{"{{ 1" + strings.Repeat("+1", 100000) + " }}", "in a row"},
		{"{{ x" + strings.Repeat("|e", 100000) + " }}", "in a row"},
		{"{{ 1" + strings.Repeat(" if 1", 100000) + " }}", "in a row"},
		{"{{ 1" + strings.Repeat(" if 1 else 1", 1000) + " }}", "nested more than"},
		{strings.Repeat("{% if x %}", 1000) + strings.Repeat("{% endif %}", 1000), "nested more than"},
		{strings.Repeat("x", maxSource+1), "more than 1 MiB"},
		{"{{ '\xff\x86'.title() }}", "not UTF-8"},
	} {
		_, err := Parse(c.source)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60s: error %v, want one with %q", c.source, err, c.want)
		}
	}
	if _, err := Parse("{% if x %}{{ y | frobnicate }}{% endif %}"); err != nil {
		t.Errorf("an unknown filter that may never be reached: %v", err)
	}
}

// TestBudget has templates that would run for ever, use all memory or overflow
// the stack.
func TestBudget(t *testing.T) {
	long := strings.Repeat("~s", 400)
	for _, c := range []struct{ source, want string }{
		{"{% macro f(n) %}{{ f(n) }}{% endmacro %}{{ f(1) }}", "nested more than"},
		{"{% macro f() %}{% for i in range(10) %}{{ f() }}{% endfor %}{% endmacro %}{{ f() }}", "nested more than"},
		{"{% for i in [[1]] recursive %}{{ loop([[1]]) }}{% endfor %}", "nested more than"},
		{"{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}", "steps"},
		{"{% for i in range(100000) %}{% set x = range(100000)|list %}{% endfor %}", "steps"},
		{"{% for i in range(100000) %}{{ 'ab' in s }}{% endfor %}", "steps"},
		{"{% for i in range(100000) %}{{ s.count('ab') }}{% endfor %}", "the template"},
		{"{% for i in range(100000) %}{{ s == s ~ '' }}{% endfor %}", "MiB of values"},
		{"{{ range(10000000000) }}", "a range of more than"},
		{"{{ range(-9223372036854775807, 9223372036854775807) }}", "a range of more than"},
		{"{% set s = 'x' * 1000000000000 %}", "a string of"},
		{"{% set l = [1] * 9223372036854775807 %}", "a list of"},
		{"{% set l = [1] * 100000000 %}", "MiB of values"},
		{"{% set ns = namespace(s='xxxxxxxxxxxxxxxx') %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}{% " +
			"endfor %}", "MiB of values"},
		{"{% set s = 'x' * 1000000 %}{% for i in range(1000) %}{{ s }}{% endfor %}", "MiB of values"},
		{"{% set s = 'x' * 10000000 %}{{ s.replace('x', s) }}", "replace: a string of"},
		{"{% set s = 'x' * 16777216 %}{{ (s" + long + ")|length }}", "MiB of values"},
		{"{% set ns = namespace(l=[]) %}{% for i in range(1000) %}{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l }}",
			"nested more than"},
		{"{% set ns = namespace(l=[]) %}{% for i in range(1000) %}{% set ns.l = [ns.l] %}{% endfor %}{% set a = " +
			"ns.l %}{% set ns.l = [] %}{% for i in range(1000) %}{% set ns.l = [ns.l] %}{% endfor %}{{ a == ns.l }}",
			"nested more than"},
		{"{% set ns = namespace(l=(1,)) %}{% for i in range(1000) %}{% set ns.l = (ns.l,) %}{% endfor %}{{ {ns.l: 1} }}", "nested more than"},
		{"{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}", "nested more than"},
		{"{% set l = [1] %}{% set f = l.append %}{% set _ = f(l) %}{{ l }}", "unsafe"},
		{"{{ 2 ** 1000000000 }}", "an integer of more than"},
		{"{% set ns = namespace(n=10) %}{% for i in range(100) %}{% set ns.n = ns.n * ns.n %}{% endfor %}",
			"an integer of more than"},
		{"{{ '%1000000000d' % 1 }}", "a field of"},
		{"{{ 'x'.center(10000000000) }}", "a string of"},
		{"{{ ('\t' * 1000000).expandtabs(1000000) }}", "expandtabs"},
		{"{{ 'a'|indent(1000000000) }}", "MiB of values"},
		{"{{ ('a\n' * 1000000)|indent(1000000) }}", "indent"},
		{"{{ [[[1]]]|tojson(indent=1000000000) }}", "MiB of values"},
		{"{{ '{:{}}'.format('a', 100000000000) }}", "a field of"},
		{"{{ (1,2)|batch(1000000000, 0)|list|length }}", "a list of"},
	} {
		_, err := render(c.source, `{"s": "`+strings.Repeat("x", 100_000)+`"}`)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.source, err, c.want)
		}
	}
	for _, source := range []string{"{{ 'abc'[:9223372036854775807:2] }}", "{{ 'abc'[::9223372036854775807] }}",
		"{{ 'abc'[-9223372036854775807::3] }}", "{{ [1,2][-99999999999999999999:] }}"} {
		if _, err := render(source, ""); err != nil {
			t.Errorf("%s: %v", source, err)
		}
	}
}

// TestStops: a render ends with its context.
func TestStops(t *testing.T) {
	tmpl, err := Parse("{% for i in range(100000) %}{{ stop(i) }}{% endfor %}")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	turns := 0
	stop := &function{name: "stop", signature: signature{params: []param{{name: "i"}}}, do: func(*run, []any) any {
		if turns++; turns == 100 {
			cancel()
		}
		return ""
	}}
	if _, err := tmpl.Render(ctx, map[string]any{"stop": stop}, 0); err == nil || turns > 100+checkEvery {
		t.Errorf("%d turns, error %v", turns, err)
	}
}

// TestErrorPlace: an error has its line, and what the outermost loop had.
func TestErrorPlace(t *testing.T) {
	_, err := render("{% for x in [1, 2] %}\n{% for y in [3] %}{{ 1 // (x - 2) }}\n{% endfor %}{% endfor %}", "")
	e, ok := err.(*Error)
	if !ok || e.Line != 2 || e.Item != 2 || e.Raised {
		t.Errorf("%#v", err)
	}
	if _, err = render("{{ raise_exception('no') }}", ""); err == nil || !err.(*Error).Raised || err.Error() != "no" {
		t.Errorf("%#v", err)
	}
}

func FuzzRender(f *testing.F) {
	for _, c := range expressions(f) {
		f.Add(c.Source, `{"s": "abc", "l": [3, 1.5, null, "x"], "d": {"a": [1], "items": 2}}`)
	}
	f.Fuzz(func(t *testing.T, source, vars string) {
		if len(source)+len(vars) > 1<<12 {
			return
		}
		tmpl, err := Parse(source)
		if err != nil {
			return
		}
		v, err := ParseJSON([]byte(vars))
		d, ok := v.(*Dict)
		if err != nil || !ok {
			return
		}
		given := map[string]any{}
		for i := range d.Len() {
			k, x := d.At(i)
			given[k.(string)] = x
		}
		a, errA := tmpl.Render(context.Background(), given, len(vars))
		b, errB := tmpl.Render(context.Background(), given, len(vars))
		if errA != nil && strings.Contains(errA.Error(), "a fault of the evaluator") {
			t.Fatal(errA)
		}
		if !tmpl.Uses("strftime_now") && (a != b || (errA == nil) != (errB == nil)) {
			t.Errorf("two renders differ: %q, %v and %q, %v", a, errA, b, errB)
		}
	})
}

package chat

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestLoadRefuses(t *testing.T) {
	for _, c := range []struct{ source, want string }{
		{"{{ x | frobnicate }}", `line 1: filter "frobnicate" is not known`},
		{"\n{{ x is frob }}", `line 2: test "frob" is not known`},
		{"{% include 'x' %}", `statement "include" is not supported`},
		{"{% for x in y recursive %}{% endfor %}", `"recursive" is not supported`},
		{"{% if x %}", "endif is missing"},
		{"{% endif %}", `"endif" closes nothing`},
		{"{% for x in y %}{% endif %}", `"endif" closes nothing`},
		{"{% else %}", `"else" without`},
		{"{{ x", "without }}"},
		{"{% macro f(x %}{% endmacro %}", "without %}"},
		{"{{ 'x }}", "string without end"},
		{"{{ }}", "an expression is missing"},
		{"{{ x ! y }}", `unexpected "! y`},
		{"{{ x / y * z }}", "put one of them in parentheses"},
		{"{{ gb_print }}", `name "gb_print" is reserved`},
		{"{% set a, b = 1, 2 %}", "one variable"},
		{"{% break %}", `"break" outside a loop`},
		{"{% macro f %}{% endmacro %}", `"macro" needs`},
		{"{{ " + strings.Repeat("(", 1000) + "x" + strings.Repeat(")", 1000) + " }}", "nested more than"},
		{strings.Repeat("{% if x %}", 1000) + strings.Repeat("{% endif %}", 1000), "nested more than"},
		{strings.Repeat("x", maxTemplateBytes+1), "bytes, more than"},
	} {
		_, err := Load(c.source, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60s: error %v, want one with %q", c.source, err, c.want)
		}
	}
}

// TestBounds has templates that would run for ever, use all memory or overflow
// the stack.
func TestBounds(t *testing.T) {
	for _, c := range []struct{ source, want string }{
		{"{% macro f(n) %}{{ f(n) }}{% endmacro %}{{ f(1, 2) }}", "nested more than"},
		{"{% macro f() %}{% for i in range(10) %}{{ f() }}{% endfor %}{% endmacro %}{{ f() }}", "nested more than"},
		{"{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}", "loop turns"},
		{"{{ range(10000000000) }}", "range of more than"},
		{"{% set s = 'x' * 1000000000000 %}", "string of more than"},
		{"{% set ns = namespace(s='xxxxxxxxxxxxxxxx') %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}{% endfor %}", "a value of more than"},
		{"{% set s = 'x' * 1000000 %}{% for i in range(100) %}{{ s }}{% endfor %}", "bytes of text"},
		{"{% set s = 'x' * 10000000 %}{{ s.replace('x', s) }}", "replace: a string of more than"},
		{"{% set ns = namespace(l=[]) %}{% for i in range(1000) %}{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l }}", "nested more than"},
		{"{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}", "a mapping in itself"},
		{"{% set l = [] %}{{ l.append(l) }}{{ l }}", "a list in itself"},
		{"{% set d = {} %}{{ d.update({'a': {'b': d}}) }}{{ d | tojson }}", "a mapping in itself"},
	} {
		tmpl, err := Load(c.source, nil)
		if err != nil {
			t.Errorf("%s: %v", c.source, err)
			continue
		}
		_, err = tmpl.Render(Input{Messages: []byte("[]")})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.source, err, c.want)
		}
	}
}

func TestRenderErrors(t *testing.T) {
	tmpl, err := Load(`{%- for m in messages -%}{%- if m.role not in ['user', 'assistant'] -%}{{ raise_exception('unknown role ' ~ m.role) }}{%- endif -%}{{ m.content }}{%- endfor -%}{{ raise_exception('late') if late }}`, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ messages, want string }{
		{``, "messages: unexpected EOF"},
		{`{`, "messages: unexpected EOF"},
		{`{}`, "messages: not an array"},
		{`[] []`, "messages: more text after the JSON value"},
		{`[{"role": "user"}, 3]`, "message 1: not an object"},
		{`[{"content": "x"}]`, "message 0: role is missing or not a string"},
		{`[{"role": "user", "tool_calls": "["}]`, "message 0: tool_calls: unexpected EOF"},
		{`[{"role": "user", "tool_calls": [1]}]`, "message 0: tool call 0: not an object"},
		{`[{"role": "user", "content": "a"}, {"role": "robot", "content": "b"}]`, "message 1: chat template: unknown role robot"},
		{strings.Repeat("[", 1000), "nested more than"},
	} {
		_, err := tmpl.Render(Input{Messages: []byte(c.messages)})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60s: error %v, want one with %q", c.messages, err, c.want)
		}
	}
	_, err = tmpl.Render(Input{Messages: []byte(`[{"role": "user", "content": ""}]`), Kwargs: map[string]json.RawMessage{"late": []byte("true")}})
	var raised *Raised
	if !errors.As(err, &raised) || err.Error() != "chat template: late" {
		t.Errorf("error %v, want the template's, of no message", err)
	}
	for key, in := range map[string]Input{
		"tools":    {Messages: []byte("[]"), Tools: []byte("{}")},
		"gb_print": {Messages: []byte("[]"), Kwargs: map[string]json.RawMessage{"gb_print": []byte("1")}},
		"x":        {Messages: []byte("[]"), Kwargs: map[string]json.RawMessage{"x": []byte("nope")}},
	} {
		if _, err := tmpl.Render(in); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("error %v, want one that names %s", err, key)
		}
	}
}

// TestColumnarMessages has what columns of structs make of messages: every key
// in every message, null where it was absent, and JSON as text.
func TestColumnarMessages(t *testing.T) {
	tmpl, err := Load(`{%- for m in messages -%}{{ m | tojson }}{{ m.name is defined }} {% endfor -%}`, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := tmpl.Render(Input{Messages: []byte(`[
		{"role": "user", "content": "a", "name": null, "tool_calls": null},
		{"name": "n", "role": "assistant", "content": null, "tool_calls": "[{\"id\": null, \"function\": {\"name\": \"f\", \"arguments\": \"{\\\"k\\\": null, \\\"n\\\": 1.50}\"}}]"},
		{"role": "user", "content": [{"type": "text", "text": "t", "url": null}], "tool_calls": [{"name": "g", "arguments": "not json"}]}]`)})
	want := `{"role": "user", "content": "a"}False ` +
		`{"name": "n", "role": "assistant", "content": null, "tool_calls": [{"function": {"name": "f", "arguments": {"k": null, "n": 1.5}}}]}True ` +
		`{"role": "user", "content": [{"type": "text", "text": "t"}], "tool_calls": [{"name": "g", "arguments": "not json"}]}False `
	if err != nil || got != want {
		t.Errorf("%v\n%s, want\n%s", err, got, want)
	}
	text, _ := json.Marshal(`[{"role": "user", "content": "a"}]`)
	if got, err := tmpl.Render(Input{Messages: text}); err != nil || got != `{"role": "user", "content": "a"}False ` {
		t.Errorf("messages as JSON text: %q, %v", got, err)
	}
	if got, err := tmpl.Render(Input{Turns: []Turn{{"user", "a"}}}); err != nil || got != `{"role": "user", "content": "a"}False ` {
		t.Errorf("turns: %q, %v", got, err)
	}
}

func TestRead(t *testing.T) {
	const config = `{"bos_token": "<s>", "eos_token": {"content": "</s>", "lstrip": false}, "pad_token": null,
		"chat_template": [{"name": "default", "template": "{{ bos_token }}d{{ eos_token }}{{ pad_token }}"}, {"name": "tool_use", "template": "t"}]}`
	for _, c := range []struct{ source, config, name, want, err string }{
		{"", config, "", "<s>d</s>", ""},
		{"", config, "tool_use", "t", ""},
		{"", config, "rag", "", `no template "rag"; there are ["default" "tool_use"]`},
		{"file {{ bos_token }}", config, "", "file <s>", ""},
		{"", `{"chat_template": "one"}`, "", "one", ""},
		{"", `{"chat_template": 3}`, "", "", "neither a string nor a list"},
		{"", `{`, "", "", "tokenizer_config.json"},
		{"", `{}`, "", "", "there is none"},
		{"", ``, "", "", "there is none"},
	} {
		var source, config []byte
		if c.source != "" {
			source = []byte(c.source)
		}
		if c.config != "" {
			config = []byte(c.config)
		}
		tmpl, err := Read(source, config, c.name)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%.40s: error %v, want one with %q", c.config, err, c.err)
			}
			if strings.Contains(c.err, "there is none") && !errors.Is(err, ErrNoTemplate) {
				t.Errorf("error %v is not ErrNoTemplate", err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%.40s: %v", c.config, err)
			continue
		}
		// An argument hides a token for one render.
		if _, err := tmpl.Render(Input{Messages: []byte("[]"), Kwargs: map[string]json.RawMessage{"bos_token": []byte("1"), "pad_token": []byte("1")}}); err != nil {
			t.Error(err)
		}
		if got, err := tmpl.Render(Input{Messages: []byte("[]")}); err != nil || got != c.want {
			t.Errorf("%.40s: %q, %v, want %q", c.config, got, err, c.want)
		}
	}
}

func TestSplitReasoning(t *testing.T) {
	for _, c := range []struct {
		text                string
		open                bool
		reasoning, response string
	}{
		{"4", false, "", "4"},
		{" 4\n", false, "", " 4\n"},
		{"<think>two and two</think>4", false, "two and two", "4"},
		{"\n<think>\nhm\n</think>\n\n4 ", false, "hm", "4"},
		{"two and two</think>4", true, "two and two", "4"},
		{"<think>x</think>4", true, "x", "4"},
		{"cut short", true, "cut short", ""},
		{"<think>cut short", false, "cut short", ""},
		{"</think>4", false, "", "4"},
		{"</think>4", true, "", "4"},
		{"no <think>in</think> front", false, "", "no <think>in</think> front"},
		{"a</think>b</think>c", true, "a", "b</think>c"},
		{"", true, "", ""},
	} {
		reasoning, response := SplitReasoning(c.text, c.open)
		if reasoning != c.reasoning || response != c.response {
			t.Errorf("%q, open %v: %q and %q, want %q and %q", c.text, c.open, reasoning, response, c.reasoning, c.response)
		}
	}
}

func FuzzRender(f *testing.F) {
	for _, g := range goldens(f, "features.jsonl.gz") {
		if g.Source != "" {
			f.Add(g.Source, []byte(g.Input["messages"]), []byte(g.Input["x"]))
		}
	}
	tiny := source(f, "tiny.jinja")
	for _, g := range goldens(f, "tiny.jsonl.gz") {
		f.Add(tiny, []byte(g.Input["messages"]), []byte(g.Input["tools"]))
	}
	f.Fuzz(func(t *testing.T, template string, messages, x []byte) {
		if len(template)+len(messages)+len(x) > 1<<14 {
			return
		}
		tmpl, err := Load(template, nil)
		if err != nil {
			return
		}
		in := Input{Messages: messages, Tools: x, Kwargs: map[string]json.RawMessage{"x": x}}
		a, errA := tmpl.Render(in)
		in.Tools = nil
		b, errB := tmpl.Render(in)
		c, errC := tmpl.Render(in)
		if errB == nil && (errC != nil || b != c) && !strings.Contains(template, "strftime_now") {
			t.Errorf("two renders differ: %q and %q, %v", b, c, errC)
		}
		_, _ = a, errA
	})
}

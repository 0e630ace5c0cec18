package chat

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"glmbatch/pipeline/chat/jinja"
)

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
		{`[{"role": "user", "content": "a"}, {"role": "robot", "content": "b"}]`,
			"message 1: chat template: unknown role robot"},
		{strings.Repeat("[", 1000), "nested more than"},
	} {
		_, err := render(t, tmpl, Input{Messages: []byte(c.messages)})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60s: error %v, want one with %q", c.messages, err, c.want)
		}
	}
	_, err = render(t, tmpl, Input{Messages: []byte(`[{"role": "user", "content": ""}]`),
		Kwargs: map[string]json.RawMessage{"late": []byte("true")}})
	var raised *jinja.Error
	if !errors.As(err, &raised) || !raised.Raised || err.Error() != "chat template: late" {
		t.Errorf("error %v, want the template's, of no message", err)
	}
	for key, in := range map[string]Input{
		"tools":    {Messages: []byte("[]"), Tools: []byte("{}")},
		"messages": {Messages: []byte("[]"), Kwargs: map[string]json.RawMessage{"messages": []byte("1")}},
		"x":        {Messages: []byte("[]"), Kwargs: map[string]json.RawMessage{"x": []byte("nope")}},
	} {
		if _, err := render(t, tmpl, in); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("error %v, want one that names %s", err, key)
		}
	}
}

// TestMessageRules has what columns of structs make of messages: every key in
// every message, null where it was absent, and JSON as text.
func TestMessageRules(t *testing.T) {
	tmpl, err := Load(
		`{%- for m in messages -%}{{ m | tojson }}{% endfor -%}{{ tools | tojson }}{{ documents | tojson }}`, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		in         Input
		want, fail string
	}{
		{Input{Messages: []byte(`[{"role": "user", "content": "a", "name": null, "tool_calls": null}]`)},
			`{"role": "user", "content": "a"}nullnull`, ""},
		{Input{Messages: []byte(`[{"role": "assistant", "content": null, "tool_calls": "[{\"id\": null, \"function\": {\"name\": \"f\", \"arguments\": \"{\\\"k\\\": null, \\\"n\\\": 1.50}\"}}]"}]`)},
			`{"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {"k": null, "n": 1.5}}}]}nullnull`, ""},
		{Input{Messages: []byte(`[{"role": "user", "content": [{"type": "text", "text": "t", "url": null}]}]`)},
			`{"role": "user", "content": [{"type": "text", "text": "t"}]}nullnull`, ""},
		{Input{Messages: []byte(`[{"role": "user"}]`)}, `{"role": "user", "content": ""}nullnull`, ""},
		{Input{Messages: []byte(`[{"role": "user", "content": "a", "tool_calls": []}]`)},
			`{"role": "user", "content": "a"}nullnull`, ""},
		{Input{Messages: []byte(`[{"role": "assistant", "content": "", "tool_calls": [{"name": "g", "arguments": ""}, {"function": {"name": "h", "arguments": null}}, {"function": {"name": "i"}}, {"function": {"arguments": "[1]"}}]}]`)},
			`{"role": "assistant", "content": "", "tool_calls": [{"name": "g", "arguments": {}}, {"function": {"name": "h", "arguments": {}}}, {"function": {"name": "i", "arguments": {}}}, {"function": {"arguments": [1]}}]}nullnull`, ""},
		{Input{Messages: []byte(`[{"role": "assistant", "tool_calls": [{"name": "g", "arguments": "not json"}]}]`)}, "",
			"message 0: tool call 0: arguments: not JSON"},
		{Input{Messages: []byte(`[{"role": "assistant", "content": "a", "reasoning": "r"}]`)},
			`{"thinking": "r", "role": "assistant", "content": "a", "reasoning": "r", "reasoning_content": "r"}nullnull`, ""},
		{Input{Messages: []byte(`[{"role": "assistant", "content": "a", "thinking": "r", "reasoning": null}]`)},
			`{"thinking": "r", "role": "assistant", "content": "a", "reasoning_content": "r"}nullnull`, ""},
		{Input{Messages: []byte(`[{"role": "assistant", "content": "a", "tool_calls": [{"function": {"name": "f", "arguments": {"x": null, "y": 1}}}]}]`), Sparse: true},
			`{"role": "assistant", "content": "a", "tool_calls": [{"function": {"name": "f", "arguments": {"y": 1}}}]}nullnull`, ""},
		{Input{Messages: []byte(`[{"role": "assistant", "content": "a", "tool_calls": [{"function": {"name": "f", "arguments": {"a": null, "b": null, "c": null, "d": null, "e": null, "y": {"z": null}}}}, {"name": "g", "arguments": {"a": null}}]}]`), Sparse: true,
			Tools: []byte(`[{"function": {"name": "f", "parameters": {"properties": {"a": {"type": ["string", "null"]}, "b": {"anyOf": [{"type": "string"}, {"type": "null"}]}, "c": {"type": "string", "nullable": true}, "d": {"type": "string"}, "e": {"enum": ["x", null]}, "y": {"type": "null"}}}}}]`)},
			`{"role": "assistant", "content": "a", "tool_calls": [{"function": {"name": "f", "arguments": {"a": null, "b": null, "c": null, "e": null, "y": {}}}}, {"name": "g", "arguments": {}}]}[{"function": {"name": "f", "parameters": {"properties": {"a": {"type": ["string", "null"]}, "b": {"anyOf": [{"type": "string"}, {"type": "null"}]}, "c": {"type": "string", "nullable": true}, "d": {"type": "string"}, "e": {"enum": ["x", null]}, "y": {"type": "null"}}}}}]null`, ""},
		{Input{Messages: []byte(`[{"role": "user", "tool_calls": ["x", {"function": 1}], "content": ""}]`),
			Sparse: true,
			Tools:  []byte(`[{"function": 1}, {"name": 2, "parameters": 3}, {"parameters": {"properties": {"a": 1, "b": {"type": [1]}}}}]`)}, "", "tool call 0: not an object"},
		{Input{Messages: []byte(`[]`), Tools: []byte(`["{\"type\": null}", {"a": null}]`)},
			`[{"type": null}, {"a": null}]null`, ""},
		{Input{Messages: []byte(`[]`), Tools: []byte(`[{"a": {"b": null, "c": [{"d": null}]}}]`), SparseTools: true},
			`[{"a": {"c": [{}]}}]null`, ""},
		{Input{Messages: []byte(`[]`), Tools: []byte(`"[{\"a\": 1}]"`)}, `[{"a": 1}]null`, ""},
		{Input{Messages: []byte(`[]`), Tools: []byte(`null`)}, `nullnull`, ""},
		{Input{Messages: []byte(`[]`), Tools: []byte(`["x"]`)}, "", "tool 0"},
		{Input{Messages: []byte(`[]`), Tools: []byte(`[1]`)}, "", "tool 0: not an object"},
		{Input{Messages: []byte(`"[{\"role\": \"user\", \"content\": \"a\"}]"`)},
			`{"role": "user", "content": "a"}nullnull`, ""},
		{Input{Turns: []Turn{{"user", "a"}}, Kwargs: map[string]json.RawMessage{"documents": []byte("[1]")}},
			`{"role": "user", "content": "a"}null[1]`, ""},
	} {
		got, err := render(t, tmpl, c.in)
		if c.fail != "" {
			if err == nil || !strings.Contains(err.Error(), c.fail) {
				t.Errorf("%s: error %v, want %q", c.in.Messages, err, c.fail)
			}
			continue
		}
		if err != nil || got != c.want {
			t.Errorf("%s%s: %v\n%s, want\n%s", c.in.Messages, c.in.Tools, err, got, c.want)
		}
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
		files := map[string][]byte{}
		if source != nil {
			files["chat_template.jinja"] = source
		}
		if config != nil {
			files["tokenizer_config.json"] = config
		}
		tmpl, err := Read(files, c.name)
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
		if _, err := render(t, tmpl, Input{Messages: []byte("[]"),
			Kwargs: map[string]json.RawMessage{"bos_token": []byte("1"), "pad_token": []byte("1")}}); err != nil {
			t.Error(err)
		}
		if got, err := render(t, tmpl, Input{Messages: []byte("[]")}); err != nil || got != c.want {
			t.Errorf("%.40s: %q, %v, want %q", c.config, got, err, c.want)
		}
	}
}

// TestReadPlaces has transformers' precedence of the places of templates.
func TestReadPlaces(t *testing.T) {
	files := map[string][]byte{
		"chat_template.jinja":                      []byte("jinja"),
		"additional_chat_templates/tool_use.jinja": []byte("tools"),
		"additional_chat_templates/rag.jinja":      []byte("rag"),
		"tokenizer_config.json":                    []byte(`{"chat_template": "config {{ bos_token }}{{ eos_token }}{{ image_token }}", "bos_token": "B", "eos_token": "E", "extra_special_tokens": {"image_token": "I"}}`),
		"special_tokens_map.json":                  []byte(`{"bos_token": {"content": "M"}}`),
		"chat_template.json":                       []byte(`{"chat_template": "legacy"}`),
	}
	plain, withTools := Input{Messages: []byte("[]")}, Input{Messages: []byte("[]"), Tools: []byte("[]")}
	for _, c := range []struct {
		without, name string
		in            Input
		want          string
	}{
		{"", "", plain, "jinja"},
		{"", "", withTools, "tools"},
		{"", "rag", withTools, "rag"},
		{"additional_chat_templates/tool_use.jinja", "", withTools, "jinja"},
		{"chat_template.jinja", "rag", plain, "rag"},
		{"additional chat_template.jinja", "", plain, "config MEI"},
		{"additional chat_template.jinja special", "", plain, "config BEI"},
		{"additional chat_template.jinja tokenizer_config", "", plain, "legacy"},
	} {
		left := map[string][]byte{}
		for name, data := range files {
			gone := false
			for part := range strings.FieldsSeq(c.without) {
				gone = gone || strings.HasPrefix(name, part)
			}
			if !gone {
				left[name] = data
			}
		}
		tmpl, err := Read(left, c.name)
		if err != nil {
			t.Errorf("without %q: %v", c.without, err)
			continue
		}
		if got, err := render(t, tmpl, c.in); err != nil || got != c.want {
			t.Errorf("without %q: %q, %v, want %q", c.without, got, err, c.want)
		}
	}
	delete(files, "chat_template.jinja")
	if _, err := Read(files, ""); err == nil ||
		!strings.Contains(err.Error(), `no template "default"; there are ["rag" "tool_use"]`) {
		t.Errorf("error %v", err)
	}
}

func TestContinue(t *testing.T) {
	const keeps, trims = "{% for m in messages %}[{{ m.content if m.content is string else m.content[0].text }}]{% " +
		"endfor %}{% if add_generation_prompt %}A{% endif %}",
		"{% for m in messages %}[{{ m.content|trim }}]{% endfor %}"
	for _, c := range []struct{ template, messages, want string }{
		{keeps, `[{"role": "user", "content": "q"}, {"role": "assistant", "content": "It is "}]`, "[q][It is "},
		{trims, `[{"role": "user", "content": "q"}, {"role": "assistant", "content": "It is "}]`, "[q][It is"},
		{keeps, `[{"role": "assistant", "content": [{"type": "text", "text": "a"}]}]`, "[a"},
		{keeps, `[{"role": "user", "content": "q"}]`, "[q]A"},
		{keeps, `[{"role": "assistant", "content": ""}]`, "["},
	} {
		tmpl, err := Load(c.template, nil)
		if err != nil {
			t.Fatal(err)
		}
		p, err := tmpl.Render(t.Context(), Input{Messages: []byte(c.messages), AddGenerationPrompt: true,
			Continue: true})
		if err != nil || p.Text != c.want {
			t.Errorf("%s: %q, %v, want %q", c.messages, p.Text, err, c.want)
		}
	}
	tmpl, err := Load("{% for m in messages %}{{ m.content.split('</think>')[-1] }}{% endfor %}", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tmpl.Render(t.Context(),
		Input{Messages: []byte(`[{"role": "assistant", "content": "<think>why</think>so"}]`), Continue: true}); err ==
		nil || !strings.Contains(err.Error(), "cannot be continued") {
		t.Errorf("error %v", err)
	}
	tmpl, _ = Load("{{ messages[0].content }}", nil)
	p, err := tmpl.Render(t.Context(), Input{Messages: []byte(`[{"role": "assistant", "content": "<think>why"}]`),
		Continue: true})
	if err != nil || !p.Thinking {
		t.Errorf("%+v, %v: the thought is open", p, err)
	}
}

func TestGuard(t *testing.T) {
	tmpl, err := Load("<|user|>{{ messages[0].content }}<|end|>{{ tools|tojson }}{{ "+
		"messages[0].content.split('</think>')|join('+') }}", nil)
	if err != nil {
		t.Fatal(err)
	}
	g := tmpl.NewGuard([]string{"<|user|>", "<|user|>x", "</think>"}, []string{"<|end|>", "<|other|>"})
	p, err := tmpl.Render(t.Context(),
		Input{Messages: []byte(`[{"role": "user", "content": "a<|user|>xb</think>c<|end|><|other|>\udb80\udc00"}]`),
			Tools: []byte(`[{"d": "<|user|>"}]`), Guard: g})
	if err != nil {
		t.Fatal(err)
	}
	var plain []string
	for _, piece := range g.Pieces(p.Text) {
		if piece.Plain {
			plain = append(plain, piece.Text)
		}
	}
	want := []string{"<|user|>x", "</think>", "<|end|>", "<|user|>", "<|user|>x", "<|end|>"}
	if !slices.Equal(plain, want) {
		t.Errorf("%q, want %q", plain, want)
	}
	if got := strings.NewReplacer(string(markStart), "", string(markEnd), "").Replace(p.Text); got !=
		`<|user|>a<|user|>xb</think>c<|end|><|other|><|end|>[{"d": "<|user|>"}]a<|user|>xb+c<|end|><|other|>` {
		t.Errorf("%q", got)
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
		{"cut short", true, "", "cut short"},
		{"<think>cut short", false, "", "<think>cut short"},
		{"</think>4", false, "", "4"},
		{"</think>4", true, "", "4"},
		{"no <think>in</think> front", false, "", "no <think>in</think> front"},
		{"a</think>b</think>c", true, "a", "b</think>c"},
		{"", true, "", ""},
	} {
		reasoning, response := SplitReasoning(c.text, c.open)
		if reasoning != c.reasoning || response != c.response {
			t.Errorf("%q, open %v: %q and %q, want %q and %q", c.text, c.open, reasoning, response,
				c.reasoning, c.response)
		}
	}
}

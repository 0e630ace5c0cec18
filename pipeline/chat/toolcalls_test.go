package chat

import (
	"encoding/json"
	"strings"
	"testing"
)

const weather = `[{"type":"function","function":{"name":"weather","parameters":{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"},"zip":{"type":"string"}}}}}, {"name":"time","parameters":{}}]`

func TestSplitToolCalls(t *testing.T) {
	for _, c := range []struct {
		name, response, said, calls, err string
	}{
		{"none", "plain text", "plain text", "null", ""},
		{"one",
			"<tool_call>weather<arg_key>city</arg_key><arg_value>Berlin</arg_value><arg_key>days</arg_key><arg_value>3</arg_value></tool_call>", "",
			`[{"Name":"weather","Arguments":"{\"city\":\"Berlin\",\"days\":3}"}]`, ""},
		{"text that looks like a number",
			"<tool_call>weather<arg_key>zip</arg_key><arg_value>01234</arg_value><arg_key>city</arg_key><arg_value>5</arg_value></tool_call>", "",
			`[{"Name":"weather","Arguments":"{\"zip\":\"01234\",\"city\":\"5\"}"}]`, ""},
		{"no schema",
			`<tool_call>other<arg_key>a</arg_key><arg_value>{"x": [1, 2]}</arg_value><arg_key>b</arg_key><arg_value>not json</arg_value></tool_call>`, "",
			`[{"Name":"other","Arguments":"{\"a\":{\"x\":[1,2]},\"b\":\"not json\"}"}]`, ""},
		{"said before, between and after", "I look.\n<tool_call>time</tool_call>\nand\n<tool_call>time</tool_call> so",
			"I look.\n\nand\n so", `[{"Name":"time","Arguments":"{}"},{"Name":"time","Arguments":"{}"}]`, ""},
		{"lines between the marks",
			"<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>two\nlines & <b></arg_value>\n</tool_call>", "",
			`[{"Name":"weather","Arguments":"{\"city\":\"two\\nlines & <b>\"}"}]`, ""},
		{"a mark alone", "weather</tool_call>", "", "null", "</tool_call> stands in no call"},
		{"a mark behind a call", "<tool_call>time</tool_call> <arg_key>", "", "null", "<arg_key> stands in no call"},
		{"no end", "x <tool_call>weather<arg_key>city", "", "null", "has no end"},
		{"no name", "<tool_call><arg_key>a</arg_key><arg_value>1</arg_value></tool_call>", "", "null", "no name"},
		{"no value", "<tool_call>f<arg_key>a</arg_key></tool_call>", "", "null", "<arg_value>"},
		{"words between", "<tool_call>f<arg_key>a</arg_key>is<arg_value>1</arg_value></tool_call>", "", "null",
			"<arg_value>"},
		{"twice",
			"<tool_call>f<arg_key>a</arg_key><arg_value>1</arg_value><arg_key>a</arg_key><arg_value>2</arg_value></tool_call>", "", "null", "twice"},
	} {
		said, calls, err := SplitToolCalls(c.response, []byte(weather))
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) || said != c.response || calls != nil {
				t.Errorf("%s: %q, %v, %v", c.name, said, calls, err)
			}
			continue
		}
		var b strings.Builder
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if jerr := e.Encode(calls); jerr != nil || err != nil || said != c.said ||
			strings.TrimSpace(b.String()) != c.calls {
			t.Errorf("%s: %q, %s, %v", c.name, said, b.String(), err)
		}
	}
	got := OpenAI([]ToolCall{{"f", `{"a":"<b>"}`}, {"g", "{}"}}, "7_0")
	if got !=
		`[{"id":"call_7_0_0","type":"function","function":{"name":"f","arguments":"{\"a\":\"<b>\"}"}},{"id":"call_7_0_1","type":"function","function":{"name":"g","arguments":"{}"}}]` {
		t.Error(got)
	}
}

// FuzzToolCalls: arguments are always JSON objects, and what is no call stays.
func FuzzToolCalls(f *testing.F) {
	f.Add("a<tool_call>weather<arg_key>city</arg_key><arg_value>Berlin</arg_value></tool_call>b", weather)
	f.Add("<tool_call>f<arg_key>a</arg_key>", `["{}"]`)
	f.Fuzz(func(t *testing.T, response, tools string) {
		said, calls, err := SplitToolCalls(response, []byte(tools))
		if (err != nil || calls == nil) && said != response && strings.TrimSpace(response) != said {
			t.Fatalf("%q became %q", response, said)
		}
		for _, c := range calls {
			var args map[string]any
			if err := json.Unmarshal([]byte(c.Arguments), &args); err != nil {
				t.Fatal(c.Arguments, err)
			}
		}
		if !json.Valid([]byte(OpenAI(calls, "1"))) {
			t.Fatal("no JSON")
		}
	})
}

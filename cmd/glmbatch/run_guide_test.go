package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const ticketSchema = `{"type":"object","properties":{"team":{"enum":["billing","shipping"]},"urgent":{"type":"boolean"},"codes":{"type":"array","items":{"type":"string","pattern":"^[A-Z][0-9]{2}$"},"maxItems":2}},"required":["team","urgent","codes"],"additionalProperties":false}`

// validates fails the test unless a text is JSON that is valid by a schema.
func validates(t *testing.T, schema, text string) {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err == nil {
		err = s.Validate(value)
	}
	if err != nil {
		t.Errorf("%q: %v", text, err)
	}
}

// TestRunGuided: what rows ask for by columns, parameters, flags and bodies, their
// responses are.
func TestRunGuided(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a model")
	}
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string) string {
		if err := os.WriteFile(in(name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return in(name)
	}
	quoted, _ := json.Marshal(ticketSchema)
	schema := write("schema.json", ticketSchema)
	grammar := write("grammar.ebnf", `root ::= "<" [a-z]{1,4} ">"`)
	format := `{"type":"json_schema","json_schema":{"name":"x","strict":true,"schema":` + ticketSchema + `}}`
	rows := write("rows.jsonl", strings.Join([]string{
		`{"prompt":"a","response_format":` + format + `}`,
		`{"prompt":"b","sampling_params":{"guided_json":` + string(quoted) + `}}`,
		`{"prompt":"c","sampling_params":{"structured_outputs":{"regex":"[0-9]{3}-[a-f]{2}"}}}`,
		`{"prompt":"d","guided_choice":["alpha","beta"],"n":2}`,
		`{"prompt":"e","response_format":{"type":"json_object"},"sampling_params":{"max_tokens":300}}`,
		`{"prompt":"f"}`,
		`{"prompt":"g","response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"not":{}}}}}`,
		`{"prompt":"h","response_format":{"type":"text"},"guided_choice":["x"]}`,
		`{"prompt":"i","sampling_params":{"guided_grammar":"root ::= \"(\" [0-9]+ \")\"","ignore_eos":true,"max_tokens":20}}`,
		`{"prompt":"j","guided_regex":"y","guided_choice":["x"]}`,
	}, "\n"))
	type result struct {
		Response *string
		Reason   string  `json:"finish_reason"`
		Code     *string `json:"error_code"`
		Error    *string `json:"error"`
	}
	run := func(want int, args ...string) (list []result) {
		t.Helper()
		code, out, errs := glmbatch(append([]string{"run", "--tp", "1", "--max-tokens", "120", "--temperature", "1",
			"--quiet", "--stdout", "jsonl"}, args...)...)
		if code != want {
			t.Fatalf("%v: exit code %d: %s%s", args, code, out, errs)
		}
		for line := range strings.Lines(out) {
			var r result
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				t.Fatal(err)
			}
			list = append(list, r)
		}
		return list
	}
	is := func(r result, re string) {
		t.Helper()
		if r.Response == nil || r.Reason == "stop" && !regexp.MustCompile(re).MatchString(*r.Response) {
			t.Errorf("%+v, want %s", r, re)
		}
	}
	got := run(exitRowErrors, rows, "--choice", "only this")
	if len(got) != 11 {
		t.Fatalf("%d rows", len(got))
	}
	for _, i := range []int{0, 1} {
		if got[i].Reason != "stop" {
			t.Fatalf("row %d: %+v", i, got[i])
		}
		validates(t, ticketSchema, *got[i].Response)
	}
	is(got[2], `^[0-9]{3}-[a-f]{2}$`)
	is(got[3], `^(alpha|beta)$`)
	is(got[4], `^(alpha|beta)$`)
	if got[5].Reason == "stop" {
		validates(t, `{"type":"object"}`, *got[5].Response)
	}
	is(got[6], `^only this$`)
	if r := got[7]; r.Code == nil || *r.Code != "bad_params" ||
		!strings.Contains(*r.Error, `response_format: the keyword "not" is not supported`) {
		t.Errorf("a keyword that is not supported: %s", *r.Error)
	}
	is(got[8], `^x$`)
	is(got[9], `^\([0-9]+\)$`)
	if r := got[10]; r.Code == nil || !strings.Contains(*r.Error, "both") {
		t.Errorf("a row of two: %+v", r)
	}

	one := write("one.jsonl", `{"prompt":"a"}`+"\n"+`{"prompt":"b"}`)
	for _, c := range []struct{ flag, value, want string }{
		{"--json-schema", schema, `"urgent"`}, {"--json-object=true", "", `^\{`}, {"--regex", "[xy]{7}", `^[xy]{7}$`},
		{"--grammar", grammar, `^<[a-z]{1,4}>$`},
	} {
		args := []string{one, c.flag}
		if c.value != "" {
			args = append(args, c.value)
		}
		for _, r := range run(0, args...) {
			is(r, c.want)
		}
	}
	for _, args := range [][]string{{"--regex", "("}, {"--json-schema", grammar}, {"--regex", "a", "--choice", "b"},
		{"--grammar", in("none")}, {"--grammar", "/dev/zero"}} {
		if code, out, errs := glmbatch(append([]string{"run", one, "--tp", "1", "--quiet", "--stdout", "jsonl"},
			args...)...); code == 0 || args[0] != "--regex" && code != exitInput {
			t.Errorf("%v: exit code %d: %s%s", args, code, out, errs)
		}
	}

	batch := write("batch.jsonl",
		fmt.Sprintf(`{"custom_id":"one","method":"POST","url":"/v1/chat/completions","body":{"messages":[{"role":"user","content":"hello"}],"temperature":1,"response_format":%s}}`, format))
	code, out, errs := glmbatch("run", batch, "--tp", "1", "--max-tokens", "120", "--quiet", "--stdout", "openai")
	var l struct {
		Response struct {
			Body struct {
				Choices []struct {
					Message struct{ Content string }
					Reason  string `json:"finish_reason"`
				}
			}
		}
	}
	if err := json.NewDecoder(bytes.NewReader([]byte(out))).Decode(&l); err != nil || code != 0 ||
		len(l.Response.Body.Choices) != 1 {
		t.Fatalf("%v: exit code %d: %s%s", err, code, out, errs)
	}
	if c := l.Response.Body.Choices[0]; c.Reason == "stop" {
		validates(t, ticketSchema, c.Message.Content)
	}
}

// TestRunContradictions: parameters that leave a guide no token are the row's error, which
// names them, before it begins where that can be known; all other responses follow the guide.
func TestRunContradictions(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a model")
	}
	object := `"response_format":{"type":"json_object"}`
	rows := []struct{ params, response, fault string }{
		{`"guided_choice":["yes","no"],"min_tokens":4`, "", "min_tokens contradicts guided_choice: no choice has more than 3"},
		{`"guided_choice":["yes"],"min_tokens":3,"logit_bias":{"91":-100}`, "yes", ""},
		{`"guided_choice":["yes","no"],"allowed_token_ids":[70,71]`, "", "allowed_token_ids contradicts guided_choice: no choice"},
		{`"guided_choice":["yes","no"],"allowed_token_ids":[88,68,82,77,78]`, "", "no end token is left"},
		{`"guided_choice":["yes","no"],"bad_words":["y","n","ye","yes","no"],"min_tokens":1`, "", "bad_words with min_tokens contradicts"},
		{`"guided_choice":["yes","no"],"max_tokens":1,"allowed_token_ids":[88,68,82,77,78]`, "[yn]", ""},
		{`"guided_regex":"[a-c]{3}","allowed_token_ids":[70,71]`, "", "allowed_token_ids contradicts guided_regex"},
		{`"guided_regex":"[a-c]{3}","min_tokens":10`, "", "min_tokens leaves none of those that guided_regex allows"},
		{`"guided_regex":"a[bc]d","bad_words":["b","c"]`, "", "bad_words leaves none of those that guided_regex allows"},
		{`"guided_regex":"x*","min_tokens":5,"max_tokens":9`, "x{5,}", ""},
		{`"guided_choice":["yes","no"],"logit_bias":{"2027":100,"2034":100,"2036":100},"ignore_eos":true`, "yes|no", ""},
		{`"guided_choice":["yes","no"],"thinking_token_budget":0`, "yes|no", ""},
		{`"guided_choice":["yes","no"],"thinking_token_budget":2,"temperature":0`, "yes|no", ""},
		{object + `,"min_tokens":30,"max_tokens":20`, "", "min_tokens 30 is more than max_tokens 20"},
		{object + `,"allowed_token_ids":[91]`, "", "allowed_token_ids contradicts response_format"},
		{object + `,"presence_penalty":2,"frequency_penalty":2,"repetition_penalty":2,"logit_bias":{"91":-100}`, `(?s)\{.*`, ""},
	}
	var in strings.Builder
	for i, r := range rows {
		fmt.Fprintf(&in, `{"prompt":"row %d","sampling_params":{%s}}`+"\n", i, r.params)
	}
	path := filepath.Join(t.TempDir(), "rows.jsonl")
	if err := os.WriteFile(path, []byte(in.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	code, out, errs := glmbatch("run", path, "--tp", "1", "--temperature", "1", "--max-tokens", "60", "--quiet",
		"--stdout", "jsonl")
	if code != exitRowErrors {
		t.Fatalf("exit code %d: %s%s", code, out, errs)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != len(rows) {
		t.Fatalf("%d rows", len(lines))
	}
	for i, line := range lines {
		var r struct {
			Response *string
			Code     string `json:"error_code"`
			Error    string
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		want := rows[i]
		switch {
		case want.fault != "" && (r.Code != "bad_params" || !strings.Contains(r.Error, want.fault)):
			t.Errorf("row %d, %s: %s", i, want.params, line)
		case want.fault == "" &&
			(r.Response == nil || !regexp.MustCompile("^("+want.response+")$").MatchString(*r.Response)):
			t.Errorf("row %d, %s: %s", i, want.params, line)
		}
	}
}

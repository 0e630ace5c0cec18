package pipeline

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"glmbatch/datasets"
	"glmbatch/datasets/datasetstest"
	"glmbatch/engine"
	"glmbatch/pipeline/chat"
)

// scripted is an engine that answers with the text that its requests' prompts ask for.
type scripted struct {
	text    Text
	answers map[string]string // by what the prompt has
	tokens  []engine.Token
}

func (s *scripted) Add(r engine.Request) error {
	prompt := s.text.Tokenizer.Decode(r.Prompt, false)
	answer := "no answer"
	for has, a := range s.answers {
		if strings.Contains(prompt, has) {
			answer = a
		}
	}
	ids := s.text.Tokenizer.Encode(nil, answer)
	for i, id := range ids {
		t := engine.Token{ID: r.ID, Token: id}
		if i == len(ids)-1 {
			t.Reason = engine.Length
		}
		if n := r.Sampling.Logprobs; n > 0 {
			t.Logprob = -0.5
			for k := range n - 1 {
				t.Top = append(t.Top, engine.Logprob{Token: id + int32(k), Logprob: -0.5 - float32(k)})
			}
		}
		s.tokens = append(s.tokens, t)
	}
	s.tokens = append(s.tokens, engine.Token{ID: r.ID, Token: 0, Reason: engine.Stop})
	return nil
}

func (s *scripted) Step() ([]engine.Token, error) {
	all := s.tokens
	s.tokens = nil
	// The end token comes instead of the limit.
	out := make([]engine.Token, 0, len(all))
	for _, t := range all {
		if t.Reason == engine.Length {
			t.Reason = engine.Going
		}
		out = append(out, t)
	}
	return out, nil
}

func (s *scripted) Cancel(int64) bool { return true }
func (s *scripted) Withdraw() []int64 { return nil }
func (s *scripted) Idle() bool        { return len(s.tokens) == 0 }

const tools = `[{"type":"function","function":{"name":"weather","parameters":{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}}}}}]`

// batchLines are requests; each has its custom_id from its body's answer.
func batchRequest(id, method, url, body string) string {
	return fmt.Sprintf(`{"custom_id":%q,"method":%q,"url":%q,"body":%s}`+"\n", id, method, url, body)
}

func chatBody(say, more string) string {
	return fmt.Sprintf(`{"model":"glm-5","messages":[{"role":"user","content":%q}]%s}`, say, more)
}

// TestBatch: OpenAI's batch requests come in as lines, and go out as lines that the public
// specification allows: answers and errors in their files, each with its custom_id.
func TestBatch(t *testing.T) {
	const chat = "/v1/chat/completions"
	input := batchRequest("plain", "POST", chat, chatBody("ask plain", "")) +
		batchRequest("tool", "POST", chat,
			chatBody("ask tool", `,"tools":`+tools+`,"tool_choice":"auto","max_completion_tokens":90`)) +
		batchRequest("broken", "POST", chat, chatBody("ask broken", `,"tools":`+tools)) +
		batchRequest("two", "POST", chat, chatBody("ask two",
			`,"n":2,"logprobs":true,"top_logprobs":2,"temperature":0.5`)) +
		batchRequest("get", "GET", chat, chatBody("ask plain", "")) +
		batchRequest("embedding", "POST", "/v1/embeddings", `{"model":"glm-5","input":"x"}`) +
		batchRequest("hot", "POST", chat, chatBody("ask plain", `,"temperature":-1`)) +
		batchRequest("schema", "POST", chat, chatBody("ask plain", `,"response_format":{"type":"json_object"}`)) +
		batchRequest("nothing", "POST", chat, `{"model":"glm-5"}`)
	in, err := datasets.OpenStream(strings.NewReader(input), "standard input")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	dir := t.TempDir()
	text := demoText(t)
	e := &scripted{text: text, answers: map[string]string{
		"ask plain":  "an answer <&>",
		"ask tool":   "I look. <tool_call>weather<arg_key>city</arg_key><arg_value>Berlin</arg_value><arg_key>days</arg_key><arg_value>3</arg_value></tool_call>",
		"ask broken": "<tool_call>weather<arg_key>city",
		"ask two":    "yes",
	}}
	j := newJob(t, in, Options{}, e, dir)
	if !j.Plan.IsBatch() {
		t.Fatal("it is no batch")
	}
	if err := j.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	rows, err := datasets.Open([]string{filepath.Join(dir, datasets.OutputsDir, "part-00000.parquet")})
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if err := WriteBatch(rows, BatchInfo{RunID: "r1", Model: "demo", Created: 1_700_000_000}, &out, &errs); err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	schema, err := c.Compile(filepath.Join("testdata", "openai-batch-output.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]batchLine{}
	bodies := map[string]completion{}
	var order []string
	for name, b := range map[string]*bytes.Buffer{"output": &out, "errors": &errs} {
		for line := range strings.Lines(b.String()) {
			v, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
			if err == nil {
				err = schema.Validate(v)
			}
			if err != nil {
				t.Errorf("%s: %v\n%s", name, err, line)
			}
			var l struct {
				batchLine
				Response struct {
					Status int             `json:"status_code"`
					Body   json.RawMessage `json:"body"`
				} `json:"response"`
			}
			if err := json.Unmarshal([]byte(line), &l); err != nil {
				t.Fatal(err)
			}
			l.batchLine.Response = &batchResponse{Status: l.Response.Status, Body: string(l.Response.Body)}
			lines[l.CustomID] = l.batchLine
			if name == "output" {
				order = append(order, l.CustomID)
				var body completion
				if err := json.Unmarshal(l.Response.Body, &body); err != nil {
					t.Fatal(err)
				}
				bodies[l.CustomID] = body
			}
		}
	}
	if !slices.Equal(order, []string{"plain", "tool", "broken", "two"}) || len(lines) != 9 {
		t.Fatalf("%v, %d lines", order, len(lines))
	}
	plain, tool, broken, two := bodies["plain"], bodies["tool"], bodies["broken"], bodies["two"]
	if p := plain.Choices[0]; *p.Message.Content != "an answer <&>" || p.Reason != "stop" || plain.Model != "glm-5" ||
		plain.Usage.Total != plain.Usage.Prompt+plain.Usage.Completion || plain.Usage.Completion == 0 {
		t.Errorf("plain: %+v", plain)
	}
	if c := tool.Choices[0]; c.Reason != "tool_calls" || *c.Message.Content != "I look." ||
		string(c.Message.Calls) !=
			`[{"id":"call_1_0_0","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Berlin\",\"days\":3}"}}]` {
		t.Errorf("tool: %+v, %s", c, c.Message.Calls)
	}
	if c := broken.Choices[0]; c.Reason != "stop" || c.Message.Calls != nil ||
		*c.Message.Content != "<tool_call>weather<arg_key>city" {
		t.Errorf("broken: %+v", c)
	}
	if len(two.Choices) != 2 || two.Choices[1].Index != 1 || two.Choices[0].Logprobs == nil ||
		len(two.Choices[0].Logprobs.Content) < 2 || len(two.Choices[0].Logprobs.Content[0].Top) != 2 {
		t.Errorf("two: %+v", two)
	}
	for id, want := range map[string][2]string{"get": {BadRequest, "line 5: "},
		"embedding": {BadRequest, "invalid_url"}, "hot": {BadParams, "line 7"},
		"schema": {BadParams, "response_format"}, "nothing": {BadMessages, "line 9"}} {
		l := lines[id]
		if body, _ := l.Response.Body.(string); l.Response.Status != 400 || !strings.Contains(body, want[0]) ||
			!strings.Contains(body, want[1]) {
			t.Errorf("%s: %+v", id, l.Response)
		}
	}
	type calls struct {
		Note *string `parquet:"tool_calls_note"`
	}
	noted, err := datasetstest.ReadAll[calls](filepath.Join(dir, datasets.OutputsDir))
	if err != nil || noted[2].Note == nil || !strings.Contains(*noted[2].Note, "has no end") || noted[1].Note != nil {
		t.Errorf("notes: %v, %v", noted, err)
	}
}

// TestBatchIDs: an id that is missing or there twice is refused before anything runs.
func TestBatchIDs(t *testing.T) {
	for ids, want := range map[string]string{"a b a": "line 3: duplicate_custom_id: ", "a b c": "",
		"a  c": "line 2: missing_required_parameter"} {
		var input strings.Builder
		for _, id := range strings.Split(ids, " ") {
			input.WriteString(batchRequest(id, "POST", batchURL, chatBody("x", "")))
		}
		in, err := datasets.OpenStream(strings.NewReader(input.String()), "standard input")
		if err != nil {
			t.Fatal(err)
		}
		_, err = NewPlan(in, Options{})
		in.Close()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", ids, err, want)
		}
	}
}

// TestBatchInOneStream: answers and errors that go to one stream keep the input's order, and
// each its line.
func TestBatchInOneStream(t *testing.T) {
	const n = 60
	var input strings.Builder
	for i := range n {
		method := "POST"
		if i%2 == 1 {
			method = "GET"
		}
		input.WriteString(batchRequest(fmt.Sprint("row", i), method, "/v1/chat/completions", chatBody("ask", "")))
	}
	in, err := datasets.OpenStream(strings.NewReader(input.String()), "standard input")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	dir, text := t.TempDir(), demoText(t)
	if err := newJob(t, in, Options{}, &scripted{text: text, answers: map[string]string{"ask": "yes"}},
		dir).Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	rows, err := datasets.Open([]string{filepath.Join(dir, datasets.OutputsDir, "part-00000.parquet")})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := WriteBatch(rows, BatchInfo{RunID: "r1", Model: "demo", Created: 1_700_000_000}, &out, &out); err != nil {
		t.Fatal(err)
	}
	i := 0
	for line := range strings.Lines(out.String()) {
		var l struct {
			ID string `json:"custom_id"`
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil || l.ID != fmt.Sprint("row", i) {
			t.Fatalf("line %d is of %q, %v: %.80s", i, l.ID, err, line)
		}
		i++
	}
	if i != n {
		t.Errorf("%d lines, want %d", i, n)
	}
}

// TestToolChoice: with none, the model is not told of tools, and its text is no call.
func TestToolChoice(t *testing.T) {
	for choice, given := range map[string]bool{`"none"`: false, `"auto"`: true, `null`: true, ``: true} {
		fields := map[string]json.RawMessage{"messages": json.RawMessage(`[]`), "tools": json.RawMessage(tools),
			"tool_choice": json.RawMessage(choice)}
		var in chat.Input
		if bad := batchInput(fields, &in); bad != nil || (in.Tools != nil) != given {
			t.Errorf("tool_choice %s: tools %s, %v", choice, in.Tools, bad)
		}
	}
}

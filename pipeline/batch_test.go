package pipeline

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"glmbatch/datasets"
)

type structBody struct {
	Messages    []structMessage `parquet:"messages,list"`
	Temperature *float64        `parquet:"temperature,optional"`
	MaxTokens   *int64          `parquet:"max_tokens,optional"`
	Kwargs      *struct {
		Effort *string `parquet:"reasoning_effort,optional"`
		Date   *string `parquet:"date,optional"`
	} `parquet:"chat_template_kwargs,optional"`
}

type structMessage struct {
	Role    string       `parquet:"role"`
	Content *string      `parquet:"content,optional"`
	Name    *string      `parquet:"name,optional"`
	Calls   []structCall `parquet:"tool_calls,list"`
}

type structCall struct {
	ID       *string `parquet:"id,optional"`
	Function struct {
		Name      string             `parquet:"name"`
		Arguments map[string]*string `parquet:"arguments"`
	} `parquet:"function"`
}

type structRequest struct {
	ID     string     `parquet:"custom_id"`
	Method string     `parquet:"method"`
	URL    string     `parquet:"url"`
	Body   structBody `parquet:"body"`
}

// preparedRows are an input's rows as the engine would get them.
func preparedRows(t *testing.T, in *datasets.Input) []*row {
	t.Helper()
	p, err := NewPlan(in, Options{Context: 2048})
	if err != nil {
		t.Fatal(err)
	}
	prep := &preparer{cols: p.cols, text: demoText(t), o: &p.Options}
	var rows []*row
	if err := in.Each(func(rec datasets.Record) error {
		rows = append(rows, prep.row(context.Background(), rec))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestBatchStructs: what is null in a body of structs is absent, as it is from the lines of
// requests that say the same.
func TestBatchStructs(t *testing.T) {
	p := func(s string) *string { return &s }
	half, most := 0.5, int64(7)
	call := structCall{}
	call.Function.Name = "weather"
	call.Function.Arguments = map[string]*string{"city": p("Berlin"), "days": nil}
	request := func(id string, b structBody) structRequest { return structRequest{id, "POST", batchURL, b} }
	structs := []structRequest{
		request("a", structBody{Messages: []structMessage{{Role: "user", Content: p("hi")}}}),
		request("b", structBody{Messages: []structMessage{{Role: "user", Content: p("hi"), Name: p("me")}},
			Temperature: &half, MaxTokens: &most}),
		request("c", structBody{Messages: []structMessage{{Role: "user", Content: p("hi")},
			{Role: "assistant", Calls: []structCall{call}}, {Role: "tool", Content: p("rain")}}}),
	}
	structs[1].Body.Kwargs = &struct {
		Effort *string `parquet:"reasoning_effort,optional"`
		Date   *string `parquet:"date,optional"`
	}{Effort: p("low")}
	lines := batchRequest("a", "POST", batchURL, `{"messages":[{"role":"user","content":"hi"}],"temperature":null}`) +
		batchRequest("b", "POST", batchURL,
			`{"messages":[{"role":"user","content":"hi","name":"me"}],"temperature":0.5,"max_tokens":7,"chat_template_kwargs":{"reasoning_effort":"low"}}`) +
		batchRequest("c", "POST", batchURL,
			`{"messages":[{"role":"user","content":"hi"},{"role":"assistant","tool_calls":[{"function":{"name":"weather","arguments":{"city":"Berlin"}}}]},{"role":"tool","content":"rain"}]}`)
	asLines, err := datasets.OpenStream(strings.NewReader(lines), "lines")
	if err != nil {
		t.Fatal(err)
	}
	defer asLines.Close()
	asStructs := inputOf(t, structs)
	defer asStructs.Close()
	want, have := preparedRows(t, asLines), preparedRows(t, asStructs)
	tokenizer := demoText(t).Tokenizer
	for i := range want {
		if want[i].err != nil || have[i].err != nil {
			t.Fatalf("row %d: %v and %v", i, want[i].err, have[i].err)
		}
		if d := cmp.Diff(tokenizer.Decode(want[i].prompt, false), tokenizer.Decode(have[i].prompt, false)); d != "" {
			t.Errorf("row %d: the prompts differ (-lines +structs):\n%s", i, d)
		}
		if want[i].identity != have[i].identity {
			t.Errorf("row %d: the parameters differ: %+v and %+v", i, want[i].params, have[i].params)
		}
	}
}

// TestPreparingCrashes: a fault of the program in making a row's prompt is that row's error.
func TestPreparingCrashes(t *testing.T) {
	in := demoInput(t)
	p, err := NewPlan(in, Options{Raw: true})
	if err != nil {
		t.Fatal(err)
	}
	prep := &preparer{cols: p.cols, text: Text{}, o: &p.Options} // without a tokenizer
	if err := in.Each(func(rec datasets.Record) error {
		if r := prep.row(context.Background(), rec); r.err == nil || r.err.code != Crashed || r.identity != 0 ||
			!strings.Contains(r.err.text, "nil pointer") {
			t.Fatalf("row %d: %+v", rec.Index, r.err)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

package pipeline

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"glmbatch/datasets"
	"glmbatch/datasets/datasetstest"
)

// linesOf opens JSON lines as an input.
func linesOf(t testing.TB, lines ...string) *datasets.Input {
	t.Helper()
	in, err := datasets.OpenStream(strings.NewReader(strings.Join(lines, "\n")), "lines")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close() })
	return in
}

// TestParamColumns: which columns steer the rows, and what is said of the others.
func TestParamColumns(t *testing.T) {
	const x = `{"prompt":"a",`
	for _, c := range []struct {
		name  string
		lines []string
		o     Options
		taken string
		note  string
		err   string
	}{
		{name: "usual values", lines: []string{x + `"temperature":0.7,"n":4,"seed":null}`},
			taken: "prompt, temperature, n", note: "all of these begin with glm_, as glm_response"},
		{name: "another name", lines: []string{x + `"max_new_tokens":7}`},
			taken: "prompt, max_tokens from max_new_tokens"},
		{name: "weather", lines: []string{x + `"temperature":1}`, x + `"temperature":21.5}`}, taken: "prompt",
			note: "column temperature is only data, in all rows: 21.5 is no usual temperature (from 0 to 2); " +
				"--param-columns temperature takes it, and a row whose value cannot be has an error"},
		{name: "weather beside parameters", lines: []string{x + `"temperature":21.5,"n":2,"max_new_tokens":5}`},
			taken: "prompt, max_tokens from max_new_tokens, n",
			note:  "--param-columns max_tokens=max_new_tokens,n,temperature takes it"},
		{name: "scored and answered", lines: []string{x + `"max_tokens":0}`, x + `"max_tokens":9}`},
			taken: "prompt, max_tokens"},
		{name: "less than no tokens", lines: []string{x + `"max_tokens":9}`, x + `"max_tokens":-1}`}, taken: "prompt",
			note: "-1 is no usual max_tokens (from 0)"},
		{name: "called like a result", lines: []string{x + `"prompt_logprobs":2}`}, taken: "prompt, prompt_logprobs",
			note: "all of these begin with glm_"},
		{name: "weather by flag", lines: []string{x + `"temperature":21.5}`},
			o: Options{ParamColumns: []string{"temperature"}}, taken: "prompt, temperature"},
		{name: "counts", lines: []string{x + `"n":120}`}, taken: "prompt",
			note: "column n is only data, in all rows: 120 is no usual n"},
		{name: "a flag too", lines: []string{x + `"temperature":0.5,"n":2}`},
			o:   Options{Given: []string{"temperature"}},
			err: `lines: both column "temperature" and --temperature say temperature: --param-columns temperature,n takes the column, and the flag for rows where it is null; --param-columns none leaves it as data`},
		{name: "settled by flag", lines: []string{x + `"temperature":0.5,"n":2}`},
			o:     Options{Given: []string{"temperature"}, ParamColumns: []string{"temperature", "n"}},
			taken: "prompt, temperature, n"},
		{name: "settled as data", lines: []string{x + `"temperature":0.5,"n":2}`},
			o: Options{Given: []string{"temperature"}, ParamColumns: []string{NoColumn}}, taken: "prompt"},
		{name: "a flag and no parameter", lines: []string{x + `"temperature":-40}`},
			o: Options{Given: []string{"temperature"}}, taken: "prompt", note: "-40 is no usual"},
		{name: "a name of one's own", lines: []string{x + `"budget":5}`},
			o: Options{ParamColumns: []string{"max_tokens=budget"}}, taken: "prompt, max_tokens from budget"},
		{name: "a job's output", lines: []string{x + `"response":"old","n":3,"seed":5}`}, taken: "prompt",
			note: "n, seed are only data, as the input is a job's output (it has a column response)"},
		{name: "a job's output, renamed", lines: []string{x + `"glm2_finish_reason":"stop","temperature":"hot"}`},
			taken: "prompt", note: "temperature is only data"},
		{name: "a job's output by flag", lines: []string{x + `"response":"old","n":3}`},
			o: Options{ParamColumns: []string{"n"}}, taken: "prompt, n", note: "all of these begin with glm_"},
		{name: "of a wrong type", lines: []string{x + `"temperature":"hot"}`},
			err: `lines: column "temperature" is STRING, which cannot be the sampling parameter: --param-columns none leaves it as data`},
		{name: "of a wrong type by flag", lines: []string{x + `"t":"hot"}`},
			o:   Options{ParamColumns: []string{"temperature=t"}},
			err: `column "t" is STRING, which cannot be temperature`},
		{name: "all parameters of a wrong type", lines: []string{x + `"sampling_params":5}`},
			err: `lines: column "sampling_params" is INT64: parameters are a struct or JSON text; --ignore-row-params leaves it as data`},
		{name: "ignored", lines: []string{x + `"sampling_params":5,"temperature":"x"}`},
			o: Options{IgnoreRowParams: true}, taken: "prompt"},
		{name: "system of a wrong type", lines: []string{x + `"system":5}`},
			err: `column "system" is INT64: it cannot be used for system; --system-column none leaves it as data`},
		{name: "system as data", lines: []string{x + `"system":5,"tools":1}`},
			o: Options{SystemColumn: NoColumn, ToolsColumn: NoColumn}, taken: "prompt"},
		{name: "tools of a wrong type", lines: []string{x + `"tools":5}`}, err: `column "tools" is INT64`},
		{name: "no such parameter", lines: []string{x + `"heat":1}`}, o: Options{ParamColumns: []string{"heat"}},
			err: "--param-columns heat: a column can have the parameters temperature, top_p"},
		{name: "no such column", lines: []string{x + `"heat":1}`}, o: Options{ParamColumns: []string{"n"}},
			err: `no column "n"; the columns are prompt, heat`},
		{name: "twice", lines: []string{x + `"a":1,"b":2}`}, o: Options{ParamColumns: []string{"n=a", "n=b"}},
			err: "two columns for n"},
		{name: "lists as text", lines: []string{x + `"stop":["x"],"stop_token_ids":[5]}`},
			taken: "prompt, stop, stop_token_ids"},
	} {
		p, err := NewPlan(linesOf(t, c.lines...), c.o)
		switch {
		case c.err != "":
			if err == nil || !strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: error %v, want %s", c.name, err, c.err)
			}
			continue
		case err != nil:
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := strings.Join(p.Taken, ", "); got != c.taken || p.Settings()["columns"] != c.taken {
			t.Errorf("%s: %s is taken, want %s", c.name, got, c.taken)
		}
		if notes := strings.Join(p.Notes, "; "); (notes == "") != (c.note == "") || !strings.Contains(notes, c.note) {
			t.Errorf("%s: notes %q, want %q", c.name, notes, c.note)
		}
	}
}

// TestPromptLists: lists that are no messages are refused before the job.
func TestPromptLists(t *testing.T) {
	type words struct {
		Prompt []string `parquet:"prompt,list"`
		Tools  []int64  `parquet:"tools,list"`
	}
	if _, err := NewPlan(inputOf(t, []words{{}}), Options{}); err == nil ||
		!strings.Contains(err.Error(), "messages are structs with role and content") {
		t.Errorf("a prompt of words: %v", err)
	}
	type numbers struct {
		Prompt string  `parquet:"prompt"`
		Tools  []int64 `parquet:"tools,list"`
	}
	if _, err := NewPlan(inputOf(t, []numbers{{}}), Options{}); err == nil ||
		!strings.Contains(err.Error(), "tools are structs or JSON text") {
		t.Errorf("tools of numbers: %v", err)
	}
}

// TestNumberColumns: decimals and half floats are parameters by their values.
func TestNumberColumns(t *testing.T) {
	type row struct {
		Prompt      string `parquet:"prompt"`
		Temperature int32  `parquet:"temperature,decimal(1:3)"`
		TopP        int64  `parquet:"top_p,decimal(2:10)"`
		N           int64  `parquet:"n,decimal(1:10)"`
	}
	in := inputOf(t, []row{{"a", 7, 90, 20}})
	_, prepare := firstRow(t, in)
	got := prepare()
	if got.err != nil || got.params.Temperature != 0.7 || got.params.TopP != 0.9 || got.params.N != 2 {
		t.Errorf("%+v, %+v", got.params, got.err)
	}
}

// TestRowLogprobs: rows that ask for log-probabilities have them, without a flag.
func TestRowLogprobs(t *testing.T) {
	in := linesOf(t, `{"prompt":"a"}`, `{"prompt":"b","sampling_params":{"logprobs":true,"top_logprobs":2}}`,
		`{"prompt":"c","sampling_params":{"logprobs":0}}`)
	dir := t.TempDir()
	if err := newJob(t, in, Options{}, &stub{vocab: 2000, length: 4}, dir).Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	type logs struct {
		Tokens int32                   `parquet:"completion_tokens"`
		Chosen []datasets.TokenLogprob `parquet:"logprobs,list"`
	}
	rows, err := datasetstest.ReadAll[logs](filepath.Join(dir, datasets.OutputsDir))
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range rows {
		if want := int(r.Tokens); len(r.Chosen) != want && i > 0 || i == 0 && len(r.Chosen) > 0 {
			t.Errorf("row %d: %d log-probabilities of %d tokens", i, len(r.Chosen), want)
		}
	}
}

// TestNeutralFields: every field of others' requests that is not ours takes its
// neutral values and null, and refuses others with a sentence.
func TestNeutralFields(t *testing.T) {
	seen := map[string]bool{}
	for i := range requestFields {
		f := &requestFields[i]
		ours := findParam(f.name) != nil
		if seen[f.name] || f.of == 0 || ours != (f.neutral == nil && f.why == "") {
			t.Errorf("%s: listed twice, nobody's, or without a sentence", f.name)
		}
		seen[f.name] = true
		set := func(v string) error {
			var p Params
			err := p.SetJSON([]byte(`{"` + f.name + `":` + v + `}`))
			if d := cmp.Diff(Params{}, p); err == nil && !ours && d != "" {
				t.Errorf("%s: %s changes %s", f.name, v, d)
			}
			return err
		}
		if err := set("null"); err != nil {
			t.Errorf("%s: null: %v", f.name, err)
		}
		if ours {
			continue
		}
		for _, v := range f.neutral {
			if v == anyValue {
				v = `{"a":["b",1]}`
			}
			if err := set(v); err != nil {
				t.Errorf("%s: %v", f.name, err)
			}
		}
		if len(f.neutral) > 0 && f.neutral[0] == anyValue {
			continue
		}
		if err := set(`"another"`); err == nil || !strings.HasSuffix(err.Error(), "is not supported: "+f.why) ||
			!strings.HasSuffix(f.why, ".") {
			t.Errorf("%s: error %v", f.name, err)
		}
	}
	for i := range params {
		for _, name := range params[i].names {
			if !seen[name] {
				t.Errorf("%s is not in the list of fields", name)
			}
		}
	}
}

// TestDoSample: false is greedy whatever the temperature.
func TestDoSample(t *testing.T) {
	for text, want := range map[string]float32{`{"do_sample":true,"temperature":0.5}`: 0.5,
		`{"do_sample":false,"temperature":0.5}`: 0, `{"do_sample":1}`: 0.25} {
		p := Params{}
		p.Temperature = 0.25
		if err := p.SetJSON([]byte(text)); err != nil || p.Temperature != want {
			t.Errorf("%s: temperature %v, %v", text, p.Temperature, err)
		}
	}
}

// firstRow is a plan of usual options for an input, and what prepares its first row by it.
func firstRow(t *testing.T, in *datasets.Input) (*Plan, func() *row) {
	t.Helper()
	p, err := NewPlan(in, Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := in.Reader(0, 1)
	t.Cleanup(func() { r.Close() })
	records, err := r.Read()
	if err != nil {
		t.Fatal(err)
	}
	return p, func() *row {
		return (&preparer{cols: p.cols, text: demoText(t), o: &p.Options}).row(t.Context(), records[0])
	}
}

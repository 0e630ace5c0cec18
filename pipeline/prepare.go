package pipeline

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"glmbatch/datasets"
	"glmbatch/pipeline/chat"
	"glmbatch/pipeline/guide"
)

// preparer turns records into rows that the engine can run. It is used by many
// goroutines at once.
type preparer struct {
	cols *columns
	text Text
	o    *Options

	once   sync.Once
	shared uint64 // hash of the parameters of rows without their own
}

// row never fails: what is wrong with a record is in the row, but for its guide, see
// judge. Nobody must look at the row once ctx is done: it may say that it was stopped.
func (p *preparer) row(ctx context.Context, rec datasets.Record) *row {
	r := &row{record: rec, params: p.o.Params}
	if err := p.safely(ctx, r); err != nil {
		r.err = err
	} else {
		r.identity = p.identify(r)
	}
	return r
}

// safely is fill; a fault of the program that a row brings about is that row's error.
func (p *preparer) safely(ctx context.Context, r *row) (bad *rowError) {
	defer func() {
		if fault := recover(); fault != nil {
			bad = badRow(Crashed, "the program crashed in making the prompt: %s", oneLine(fmt.Errorf("%v", fault)))
		}
	}()
	return p.fill(ctx, r)
}

func (p *preparer) fill(ctx context.Context, r *row) *rowError {
	if err := p.rowParams(r); err != nil {
		return err
	}
	prompt, err := p.render(ctx, r)
	if err != nil {
		return err
	}
	if err := p.encode(r, prompt); err != nil {
		return err
	}
	if len(r.prompt) == 0 {
		return badRow(EmptyPrompt, "the prompt has no tokens")
	}
	return p.fit(ctx, r)
}

// encode takes the model's input.
func (p *preparer) encode(r *row, prompt chat.Prompt) *rowError {
	r.open = prompt.Thinking
	var err error
	if r.prompt, err = p.text.encode(prompt.Text); err != nil {
		return badRow(BadRequest, "%v", err)
	}
	return nil
}

// fit sees to it that prompt and output are within the context.
func (p *preparer) fit(ctx context.Context, r *row) *rowError {
	room := p.o.Context - 1 // for one token at least
	if len(r.prompt) > room && !p.o.truncates() {
		return badRow(TooLong, "the prompt has %d tokens, the context has room for %d and one of output",
			len(r.prompt), room)
	}
	if len(r.prompt) > room {
		keep := p.o.Context - max(1, min(r.params.MaxTokens, p.o.Context/2))
		if err := p.shorten(ctx, r, keep); err != nil {
			return err
		}
	}
	r.input = nil // it is large
	if most := p.o.Context - len(r.prompt); r.params.MaxTokens == 0 || r.params.MaxTokens > most {
		r.params.MaxTokens = most
	}
	r.params.MinTokens = min(r.params.MinTokens, r.params.MaxTokens)
	return nil
}

// render returns the model's input as text.
func (p *preparer) render(ctx context.Context, r *row) (prompt chat.Prompt, bad *rowError) {
	var in chat.Input
	if p.cols.batch != nil {
		fields, bad := p.cols.batch.request(r.record)
		if bad != nil {
			return prompt, bad
		}
		in.Kwargs = p.o.TemplateArgs
		if bad := batchInput(fields, &in); bad != nil {
			return prompt, bad
		}
		in.Sparse = p.cols.batch.body.Shape == datasets.Struct // as messages and tools in columns of structs
		in.SparseTools = in.Sparse
	} else if p.cols.messages {
		messages, ok, err := jsonOf(p.cols.prompt, r.record)
		if err != nil {
			return prompt, err
		}
		if !ok {
			return prompt, badRow(NullPrompt, "column %s is null", p.cols.prompt.Name)
		}
		if b := bytes.TrimLeft(messages, " \t\r\n"); len(b) == 0 || b[0] != '[' {
			return prompt, badRow(BadMessages, "column %s is not a JSON list of messages", p.cols.prompt.Name)
		}
		in.Messages, in.Sparse = messages, p.cols.prompt.Shape == datasets.List
	} else {
		text, ok, err := p.cols.prompt.Text(r.record)
		switch {
		case err != nil:
			return prompt, badRow(BadUTF8, "column %s is not valid UTF-8", p.cols.prompt.Name)
		case !ok:
			return prompt, badRow(NullPrompt, "column %s is null", p.cols.prompt.Name)
		case p.o.Raw:
			return chat.Raw(string(text)), nil
		}
		in.Turns = []chat.Turn{{Role: "user", Content: string(text)}}
	}
	if err := p.addSystem(&in, r.record); err != nil {
		return prompt, err
	}
	if p.cols.tools != nil {
		tools, ok, err := jsonOf(*p.cols.tools, r.record)
		if err != nil {
			return prompt, err
		}
		if ok {
			in.Tools, in.SparseTools = tools, p.cols.tools.Shape == datasets.List &&
				p.cols.tools.Element() == datasets.Struct
		}
	}
	if p.cols.batch == nil {
		if in.Kwargs, bad = p.templateArgs(r.record); bad != nil {
			return prompt, bad
		}
	}
	r.tools = in.Tools
	in.AddGenerationPrompt, in.Continue, in.Guard = true, p.o.Continue, p.text.Guard
	if _, ok := in.Kwargs["enable_thinking"]; !ok {
		in.EnableThinking = p.o.Thinking
	}
	if p.o.truncates() {
		r.input = &in
	}
	prompt, err := p.text.Template.Render(ctx, in)
	if err != nil {
		return prompt, badRow(TemplateError, "%v", oneLine(err))
	}
	return prompt, nil
}

// addSystem puts a system message in front, unless the messages begin with one.
func (p *preparer) addSystem(in *chat.Input, rec datasets.Record) *rowError {
	system := []byte(p.o.System)
	if p.cols.system != nil {
		s, ok, err := p.cols.system.Text(rec)
		if err != nil {
			return badRow(BadUTF8, "column %s is not valid UTF-8", p.cols.system.Name)
		}
		if ok {
			system = s
		}
	}
	if len(system) == 0 {
		return nil
	}
	if !p.cols.messages {
		in.Turns = append([]chat.Turn{{Role: "system", Content: string(system)}}, in.Turns...)
		return nil
	}
	var list []json.RawMessage
	if err := json.Unmarshal(in.Messages, &list); err != nil {
		return badRow(BadMessages, "column %s: %v", p.cols.prompt.Name, err)
	}
	var first struct {
		Role string `json:"role"`
	}
	if len(list) > 0 && json.Unmarshal(list[0], &first) == nil && first.Role == "system" {
		return nil
	}
	message, err := json.Marshal(map[string]string{"role": "system", "content": string(system)})
	if err != nil {
		return badRow(BadMessages, "the system message: %v", err)
	}
	if in.Messages, err = json.Marshal(append([]json.RawMessage{message}, list...)); err != nil {
		return badRow(BadMessages, "column %s: %v", p.cols.prompt.Name, err)
	}
	return nil
}

// jsonOf returns a column's value as JSON: text columns hold it, others become it.
func jsonOf(f datasets.Field, rec datasets.Record) (v []byte, ok bool, bad *rowError) {
	var err error
	if f.Shape == datasets.Text {
		v, ok, err = f.Text(rec)
		if err == nil && ok && !json.Valid(v) {
			return nil, false, badRow(BadMessages, "column %s is not valid JSON", f.Name)
		}
	} else {
		v, ok, err = f.JSON(nil, rec)
	}
	switch {
	case errors.Is(err, datasets.ErrUTF8):
		return nil, false, badRow(BadUTF8, "column %s is not valid UTF-8", f.Name)
	case err != nil:
		return nil, false, badRow(BadMessages, "column %s: %v", f.Name, err)
	}
	return v, ok && string(bytes.TrimSpace(v)) != "null", nil
}

// rowParams applies the row's own parameters: the struct first, then single columns.
func (p *preparer) rowParams(r *row) *rowError {
	if b := p.cols.batch; b != nil && p.cols.params != nil {
		fields, bad := b.request(r.record)
		if bad != nil {
			return bad
		}
		v := batchParams(fields)
		if b.body.Shape == datasets.Struct {
			v = guide.Dense(v)
		}
		if err := r.params.SetJSON(v); err != nil {
			return badRow(BadParams, "line %d: %v", r.record.Index+1, err)
		}
	} else if f := p.cols.params; f != nil {
		v, ok, err := jsonOf(*f, r.record)
		if err != nil {
			return badRow(BadParams, "%s", err.text)
		}
		if ok {
			if f.Shape == datasets.Struct {
				v = guide.Dense(v)
			}
			if err := r.params.SetJSON(v); err != nil {
				return badRow(BadParams, "column %s: %v", f.Name, err)
			}
		}
	}
	guides := oneGuide{}
	for _, c := range p.cols.single {
		v, ok, err := c.field.JSON(nil, r.record)
		if err == nil && ok {
			var to *Params
			if to, err = guides.add(&r.params, c.param.names[0], v); err == nil {
				err = c.set(to, v)
			}
		}
		if err != nil {
			return badRow(BadParams, "column %s: %v", c.field.Name, err)
		}
	}
	if r.params.wantsLogprobs() && !p.o.Logprobs {
		return badRow(BadParams,
			"no row among the first %d asks for logprobs, so the output has no columns for them: give --logprobs",
			lookRows)
	}
	if r.params.PromptLogprobs > 0 && !p.o.PromptLogprobs {
		return badRow(BadParams,
			"no row among the first %d asks for prompt_logprobs, so the output has no columns for them: give "+
				"--prompt-logprobs", lookRows)
	}
	if err := p.text.resolve(&r.params, p.o.EndTokens); err != nil {
		return badRow(BadParams, "%v", err)
	}
	return nil
}

// oneLine makes an error fit a table cell.
func oneLine(err error) string {
	s := strings.Join(strings.Fields(err.Error()), " ")
	if len(s) > 500 {
		s = strings.ToValidUTF8(s[:500], "") + "…"
	}
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	return s
}

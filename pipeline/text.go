package pipeline

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"glmbatch/datasets"
	"glmbatch/pipeline/chat"
	"glmbatch/pipeline/tokenizer"
)

// Text is the model's side of text: what turns prompts into tokens and back.
type Text struct {
	Tokenizer *tokenizer.Tokenizer
	Template  *chat.Template // nil: the checkpoint has none, prompts must be raw
	Guard     *chat.Guard    // nil: tokens in messages are tokens
	Guides    *Guides        // nil: rows that have to follow a grammar cannot be run
}

// TextOptions say how prompts become tokens. The zero value is the checkpoint's way.
type TextOptions struct {
	Raw      bool   // there is no need of a template
	Template string // the name of one of the checkpoint's templates; "": its default
	Source   []byte // the source of another template; nil: the checkpoint's
	Sanitize bool   // tokens in messages are text
}

// LoadText reads a checkpoint's tokenizer.json and chat template from its files,
// by name.
func LoadText(files map[string][]byte, o TextOptions) (t Text, err error) {
	if files["tokenizer.json"] == nil {
		return t, errors.New("the checkpoint has no tokenizer.json")
	}
	if t.Tokenizer, err = tokenizer.Load(files["tokenizer.json"]); err != nil || o.Raw {
		return t, err
	}
	if o.Source != nil {
		t.Template, err = chat.Replace(files, string(o.Source))
	} else {
		t.Template, err = chat.Read(files, o.Template)
	}
	switch {
	case errors.Is(err, chat.ErrNoTemplate):
		return t, nil
	case err == nil && o.Sanitize:
		t.Guard = t.Template.NewGuard(t.Tokenizer.Added())
	}
	return t, err
}

// SetNow fixes the time that templates see, so that all rows of a job have one.
func (t Text) SetNow(now time.Time) {
	if t.Template != nil {
		t.Template.SetNow(now)
	}
}

// encode turns a prompt into tokens.
func (t Text) encode(prompt string) (ids []int32, err error) {
	ids = make([]int32, 0, len(prompt)/3+8)
	if t.Guard == nil {
		return t.Tokenizer.TryEncode(ids, prompt)
	}
	for _, p := range t.Guard.Pieces(prompt) {
		if p.Plain {
			ids, err = t.Tokenizer.EncodePlain(ids, p.Text)
		} else {
			ids, err = t.Tokenizer.TryEncode(ids, p.Text)
		}
		if err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// decodeCalls is a response's text with the marks of calls of tools, which are special
// tokens in some tokenizers.
func (t Text) decodeCalls(tokens []int32) string {
	var b strings.Builder
	from := 0
	for i := range tokens {
		mark := t.Tokenizer.Decode(tokens[i:i+1], false)
		if !slices.Contains(chat.CallMarks, mark) {
			continue
		}
		b.WriteString(t.Tokenizer.Decode(tokens[from:i], true))
		b.WriteString(mark)
		from = i + 1
	}
	b.WriteString(t.Tokenizer.Decode(tokens[from:], true))
	return b.String()
}

// templateArgs are a row's variables of the chat template: the job's, and its own.
func (p *preparer) templateArgs(rec datasets.Record) (map[string]json.RawMessage, *rowError) {
	f := p.cols.args
	if f == nil {
		return p.o.TemplateArgs, nil
	}
	v, ok, bad := jsonOf(*f, rec)
	if bad != nil {
		return nil, badRow(BadParams, "%s", bad.text)
	}
	if !ok {
		return p.o.TemplateArgs, nil
	}
	var own map[string]json.RawMessage
	if err := json.Unmarshal(v, &own); err != nil {
		return nil, badRow(BadParams, "column %s is not a JSON object", f.Name)
	}
	args := maps.Clone(p.o.TemplateArgs)
	if args == nil {
		args = map[string]json.RawMessage{}
	}
	for key, value := range own {
		if f.Shape != datasets.Struct || string(value) != "null" { // null in a struct is absence
			args[key] = value
		}
	}
	return args, nil
}

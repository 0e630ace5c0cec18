package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/ardanlabs/jinja"
)

// Template is a compiled chat template, safe for concurrent use.
type Template struct {
	compiled *jinja.Template
	helpers  []string          // the names of helpers that the template calls
	tokens   map[string]string // bos_token and the like
}

// Input is what a template is rendered with.
type Input struct {
	Messages            []byte                     // a JSON array of objects
	Tools               []byte                     // a JSON array; nil: none
	AddGenerationPrompt bool                       // end with the start of the assistant's turn
	EnableThinking      *bool                      // nil: not defined, the template's default
	Kwargs              map[string]json.RawMessage // any other variables of the template
}

// Load compiles the source of a template. Tokens are variables of the template
// such as bos_token; nil for none.
func Load(source string, tokens map[string]string) (*Template, error) {
	code, helpers, err := rewrite(source)
	if err != nil {
		return nil, fmt.Errorf("chat template: %w", err)
	}
	compiled, err := jinja.Compile(code)
	if err != nil {
		return nil, fmt.Errorf("chat template: %w", err)
	}
	return &Template{compiled, helpers, tokens}, nil
}

// Read finds and compiles the template of a checkpoint from the bytes of its
// chat_template.jinja and tokenizer_config.json, either of which may be nil.
// The former has precedence. Where the latter names several templates, name
// chooses; "" is "default".
func Read(source, config []byte, name string) (*Template, error) {
	var c map[string]json.RawMessage
	if config != nil {
		if err := json.Unmarshal(config, &c); err != nil {
			return nil, fmt.Errorf("tokenizer_config.json: %w", err)
		}
	}
	if source == nil {
		found, err := configured(c["chat_template"], name)
		if err != nil {
			return nil, fmt.Errorf("tokenizer_config.json: chat_template: %w", err)
		}
		source = []byte(found)
	}
	tokens := make(map[string]string)
	for _, key := range []string{"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"} {
		var text string
		var object struct{ Content string }
		switch {
		case json.Unmarshal(c[key], &text) == nil && text != "":
			tokens[key] = text
		case json.Unmarshal(c[key], &object) == nil && object.Content != "":
			tokens[key] = object.Content
		}
	}
	return Load(string(source), tokens)
}

// ErrNoTemplate is returned by Read when a checkpoint has no chat template.
var ErrNoTemplate = errors.New("there is none")

// configured picks a template from a string or a list of named ones.
func configured(data json.RawMessage, name string) (string, error) {
	var text string
	var list []struct{ Name, Template string }
	switch {
	case len(data) == 0 || string(data) == "null":
		return "", ErrNoTemplate
	case json.Unmarshal(data, &text) == nil:
		return text, nil
	case json.Unmarshal(data, &list) != nil:
		return "", errors.New("neither a string nor a list of named templates")
	}
	if name == "" {
		name = "default"
	}
	var names []string
	for _, t := range list {
		if t.Name == name {
			return t.Template, nil
		}
		names = append(names, t.Name)
	}
	return "", fmt.Errorf("no template %q; there are %q", name, names)
}

// Render returns the prompt's text. Errors are the input's or the template's
// (raise_exception); they name the message where they can.
func (t *Template) Render(in Input) (text string, err error) {
	data := make(map[string]jinja.Value, len(t.helpers)+len(t.tokens)+len(in.Kwargs)+4)
	for key, token := range t.tokens {
		data[key] = jinja.NewString(token)
	}
	for key, raw := range in.Kwargs {
		if isHelper(key) {
			return "", fmt.Errorf("template argument %q: the name is taken", key)
		}
		if data[key], err = decode(raw); err != nil {
			return "", fmt.Errorf("template argument %q: %w", key, err)
		}
	}
	if data["messages"], err = decodeMessages(in.Messages); err != nil {
		return "", err
	}
	if in.Tools != nil {
		if data["tools"], err = decode(in.Tools); err != nil {
			return "", fmt.Errorf("tools: %w", err)
		}
		if !data["tools"].IsList() && !data["tools"].IsNone() {
			return "", errors.New("tools: not an array")
		}
	}
	data["add_generation_prompt"] = jinja.NewBool(in.AddGenerationPrompt)
	if in.EnableThinking != nil {
		data["enable_thinking"] = jinja.NewBool(*in.EnableThinking)
	}
	r := &run{message: -1}
	for _, name := range t.helpers {
		do := helpers[name]
		data[name] = jinja.NewCallable(name, func(args []jinja.Value, kwargs map[string]jinja.Value) (jinja.Value, error) {
			return do(r, args, kwargs)
		})
	}
	defer func() {
		// The library panics on some operations, for example a string times a
		// negative number; the input decides which are reached.
		if p := recover(); p != nil {
			text, err = "", fmt.Errorf("chat template: %v", p)
		}
		if err != nil && r.message >= 0 {
			err = fmt.Errorf("message %d: %w", r.message, err)
		}
	}()
	text, err = t.compiled.RenderValues(data)
	if err != nil {
		return "", fmt.Errorf("chat template: %w", err)
	}
	return text, nil
}

// isHelper tells whether a name is one of those that rewriting brings in.
func isHelper(name string) bool {
	return len(name) >= len(helperPrefix) && name[:len(helperPrefix)] == helperPrefix || slices.Contains(overridden, name)
}

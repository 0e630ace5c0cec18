package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/ardanlabs/jinja"
)

// Template is a compiled chat template, safe for concurrent use.
type Template struct {
	compiled *jinja.Template
	scopes   sync.Pool // of *scope: making one costs as much as a short render
}

// scope is the variables of one render: builtins, tokens and input.
type scope struct {
	run  run
	data map[string]jinja.Value
}

// newScope returns the builtins, bound to its run, and the tokens.
func newScope(names []string, tokens map[string]string) *scope {
	s := &scope{data: make(map[string]jinja.Value)}
	for key, token := range tokens {
		s.data[key] = jinja.NewString(token)
	}
	for _, name := range names {
		do := builtins[name]
		s.data[name] = jinja.NewCallable(name, func(a []jinja.Value, k map[string]jinja.Value) (jinja.Value, error) {
			return do(&s.run, a, k)
		})
	}
	return s
}

// Input is what a template is rendered with.
type Input struct {
	Messages            []byte                     // a JSON array of objects
	Turns               []Turn                     // instead of Messages, where it is nil
	Tools               []byte                     // a JSON array; nil: none
	AddGenerationPrompt bool                       // end with the start of the assistant's turn
	EnableThinking      *bool                      // nil: not defined, the template's default
	Kwargs              map[string]json.RawMessage // any other variables of the template
}

// Turn is a message of text alone.
type Turn struct{ Role, Content string }

// Load compiles the source of a template. Tokens are variables of the template
// such as bos_token; nil for none.
func Load(source string, tokens map[string]string) (*Template, error) {
	code, names, err := rewrite(source)
	if err != nil {
		return nil, fmt.Errorf("chat template: %w", err)
	}
	compiled, err := jinja.Compile(code)
	if err != nil {
		return nil, fmt.Errorf("chat template: %w", err)
	}
	tokens = maps.Clone(tokens)
	t := &Template{compiled: compiled}
	t.scopes.New = func() any { return newScope(names, tokens) }
	return t, nil
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
	input, err := in.values()
	if err != nil {
		return "", err
	}
	s := t.scopes.Get().(*scope)
	s.run = run{message: -1}
	hidden := make(map[string]jinja.Value) // tokens that the input has another value for
	for key, v := range input {
		if old, ok := s.data[key]; ok {
			hidden[key] = old
		}
		s.data[key] = v
	}
	defer func() {
		// The library panics on some operations; the input decides which are
		// reached.
		if p := recover(); p != nil {
			text, err = "", fmt.Errorf("chat template: %v", p)
		}
		if err != nil && s.run.message >= 0 {
			err = fmt.Errorf("message %d: %w", s.run.message, err)
		}
		for key := range input {
			delete(s.data, key)
		}
		maps.Copy(s.data, hidden)
		t.scopes.Put(s)
	}()
	text, err = t.compiled.RenderValues(s.data)
	if err != nil {
		return "", fmt.Errorf("chat template: %w", err)
	}
	return text, nil
}

// values are the variables of the template that the input gives.
func (in *Input) values() (map[string]jinja.Value, error) {
	data := make(map[string]jinja.Value, len(in.Kwargs)+4)
	var err error
	for key, raw := range in.Kwargs {
		if isBuiltin(key) {
			return nil, fmt.Errorf("template argument %q: the name is taken", key)
		}
		if data[key], err = decode(raw); err != nil {
			return nil, fmt.Errorf("template argument %q: %w", key, err)
		}
	}
	if in.Messages == nil && in.Turns != nil {
		data["messages"] = fromTurns(in.Turns)
	} else if data["messages"], err = decodeMessages(in.Messages); err != nil {
		return nil, err
	}
	if in.Tools != nil {
		if data["tools"], err = decode(in.Tools); err != nil {
			return nil, fmt.Errorf("tools: %w", err)
		}
		if !data["tools"].IsList() && !data["tools"].IsNone() {
			return nil, errors.New("tools: not an array")
		}
	}
	data["add_generation_prompt"] = jinja.NewBool(in.AddGenerationPrompt)
	if in.EnableThinking != nil {
		data["enable_thinking"] = jinja.NewBool(*in.EnableThinking)
	}
	return data, nil
}

// isBuiltin tells whether a name is one of those that rewriting brings in.
func isBuiltin(name string) bool {
	return strings.HasPrefix(name, builtinPrefix) || slices.Contains(overridden, name)
}

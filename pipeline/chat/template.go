package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"glmbatch/pipeline/chat/jinja"
)

// Template is a chat template, safe for concurrent use.
type Template struct {
	main   *jinja.Template
	tools  *jinja.Template // for inputs with tools; nil: main
	tokens map[string]any  // variables such as bos_token
}

// Input is what a template is rendered with.
type Input struct {
	Messages            []byte                     // a JSON array of objects
	Turns               []Turn                     // instead of Messages, where it is nil
	Tools               []byte                     // a JSON array; nil: none
	Sparse              bool                       // null stands for absent in all of Messages
	SparseTools         bool                       // and in all of Tools
	AddGenerationPrompt bool                       // end with the start of the assistant's turn
	Continue            bool                       // if the last message is the assistant's, end inside of it
	EnableThinking      *bool                      // nil: not defined, the template's default
	Kwargs              map[string]json.RawMessage // any other variables of the template
	Guard               *Guard                     // nil: tokens in messages are tokens
}

// Turn is a message of text alone.
type Turn struct{ Role, Content string }

// Prompt is a rendered input.
type Prompt struct {
	Text     string // with Guard's marks
	Thinking bool   // it ends inside <think>
}

// Raw is a prompt that no template made.
func Raw(text string) Prompt { return Prompt{text, endsThinking(text)} }

// Load parses the source of a template. Tokens are variables of the template
// such as bos_token; nil for none.
func Load(source string, tokens map[string]string) (*Template, error) {
	main, err := jinja.Parse(source)
	if err != nil {
		return nil, fmt.Errorf("chat template: %w", err)
	}
	t := &Template{main: main, tokens: map[string]any{}}
	for name, token := range tokens {
		t.tokens[name] = token
	}
	return t, nil
}

// SetNow fixes what strftime_now says; without it, it is the time of the render.
func (t *Template) SetNow(now time.Time) {
	t.main.Now = now
	if t.tools != nil {
		t.tools.Now = now
	}
}

// Uses tells whether the template reads or sets a variable of this name.
func (t *Template) Uses(name string) bool {
	return t.main.Uses(name) || t.tools != nil && t.tools.Uses(name)
}

// taken are the variables that arguments cannot be.
var taken = []string{"messages", "tools", "add_generation_prompt", "continue_final_message"}

// Render returns the prompt. Errors are the input's, the template's
// (raise_exception) or the context's; they name the message where they can.
func (t *Template) Render(ctx context.Context, in Input) (Prompt, error) {
	vars := make(map[string]any, len(t.tokens)+len(in.Kwargs)+8)
	maps.Copy(vars, t.tokens)
	vars["documents"] = nil
	for _, key := range slices.Sorted(maps.Keys(in.Kwargs)) {
		if slices.Contains(taken, key) {
			return Prompt{}, fmt.Errorf("template argument %q: the name is taken", key)
		}
		v, err := jinja.ParseJSON(in.Kwargs[key])
		if err != nil {
			return Prompt{}, fmt.Errorf("template argument %q: %w", key, err)
		}
		vars[key] = in.Guard.markAll(v)
	}
	messages, err := in.messages()
	if err != nil {
		return Prompt{}, err
	}
	tools, err := in.tools()
	if err != nil {
		return Prompt{}, err
	}
	in.Guard.markAll(messages)
	var end ending
	add := in.AddGenerationPrompt
	if in.Continue && end.tag(messages) {
		add = false
	}
	vars["messages"], vars["tools"], vars["add_generation_prompt"] = messages, in.Guard.markAll(tools), add
	if in.EnableThinking != nil {
		vars["enable_thinking"] = *in.EnableThinking
	}
	template := t.main
	if tools != nil && t.tools != nil {
		template = t.tools
	}
	text, err := template.Render(ctx, vars, len(in.Messages)+len(in.Tools))
	if err != nil {
		return Prompt{}, templateError(err, messages)
	}
	if end.message == nil {
		return Prompt{text, endsThinking(text)}, nil
	}
	if text, err = end.cut(text); err != nil {
		return Prompt{}, err
	}
	return Prompt{text, insideThinking(text)}, nil
}

// templateError says of which message an error is, if it was in a loop over them.
func templateError(err error, messages *jinja.List) error {
	var e *jinja.Error
	if !errors.As(err, &e) {
		return fmt.Errorf("chat template: %w", err)
	}
	if e.Cause != nil {
		return e.Cause
	}
	if i := slices.IndexFunc(messages.Items, func(m any) bool { return m == e.Item }); i >= 0 {
		return fmt.Errorf("message %d: chat template: %w", i, err)
	}
	return fmt.Errorf("chat template: %w", err)
}

// endsThinking tells whether a prompt leaves the model inside <think>.
func endsThinking(text string) bool {
	return strings.HasSuffix(strings.TrimRight(text[max(0, len(text)-32):], " \n"), "<think>")
}

// insideThinking is endsThinking for a message that goes on.
func insideThinking(text string) bool {
	i := strings.LastIndex(text, "<think>")
	return i >= 0 && !strings.Contains(text[i:], "</think>")
}

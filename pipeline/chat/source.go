package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// Files are the names of the files of a checkpoint that Read looks at, and the
// folder of further templates, NAME.jinja.
var (
	Files  = []string{"chat_template.jinja", "tokenizer_config.json", "special_tokens_map.json", "chat_template.json"}
	Folder = "additional_chat_templates"
)

// ErrNoTemplate is returned by Read when a checkpoint has no chat template.
var ErrNoTemplate = errors.New("there is none")

// Read finds and parses the template of a checkpoint from the bytes of its files,
// by their names, with transformers' precedence: chat_template.jinja and the
// templates of additional_chat_templates, else those of tokenizer_config.json,
// else chat_template.json. Of several, "tool_use" is for rows with tools and
// "default" for others; a name chooses one for all.
func Read(files map[string][]byte, name string) (*Template, error) {
	tokens, sources, from, err := sources(files)
	if err != nil {
		return nil, err
	}
	if len(sources) == 0 {
		return nil, ErrNoTemplate
	}
	pick := func(want string) (*Template, error) {
		t, err := Load(sources[want], tokens)
		if err != nil {
			return nil, fmt.Errorf("%s: template %q: %w", from, want, err)
		}
		return t, nil
	}
	want := name
	if want == "" {
		want = "default"
	}
	_, ok := sources[want]
	_, forTools := sources["tool_use"]
	if !ok {
		names := slices.Sorted(maps.Keys(sources))
		return nil, fmt.Errorf("%s: no template %q; there are %q", from, want, names)
	}
	t, err := pick(want)
	if err != nil || name != "" || !forTools {
		return t, err
	}
	tools, err := pick("tool_use")
	if err == nil {
		t.tools = tools.main
	}
	return t, err
}

// Replace is a template of the user's own, with the tokens of the checkpoint's
// files.
func Replace(files map[string][]byte, source string) (*Template, error) {
	tokens, err := readTokens(files)
	if err != nil {
		return nil, err
	}
	return Load(source, tokens)
}

// sources returns the tokens, and the templates by name, of the first place that
// has any.
func sources(files map[string][]byte) (tokens, found map[string]string, from string, err error) {
	if tokens, err = readTokens(files); err != nil {
		return nil, nil, "", err
	}
	found = map[string]string{}
	if data, ok := files["chat_template.jinja"]; ok {
		found["default"] = string(data)
	}
	for name, data := range files {
		if dir, base := path.Split(name); dir == Folder+"/" && strings.HasSuffix(base, ".jinja") {
			found[strings.TrimSuffix(base, ".jinja")] = string(data)
		}
	}
	if len(found) > 0 {
		return tokens, found, "chat_template.jinja", nil
	}
	for _, name := range []string{"tokenizer_config.json", "chat_template.json"} {
		if files[name] == nil {
			continue
		}
		var c struct {
			Template json.RawMessage `json:"chat_template"`
		}
		if err := json.Unmarshal(files[name], &c); err != nil {
			return nil, nil, "", fmt.Errorf("%s: %w", name, err)
		}
		if found, err = named(c.Template); err != nil {
			return nil, nil, "", fmt.Errorf("%s: chat_template: %w", name, err)
		}
		if len(found) > 0 {
			return tokens, found, name, nil
		}
	}
	return tokens, nil, "", nil
}

// named reads a template, a list of named ones, or a mapping of them.
func named(data json.RawMessage) (map[string]string, error) {
	var text string
	var list []struct{ Name, Template string }
	found := map[string]string{}
	switch {
	case len(data) == 0 || string(data) == "null":
	case json.Unmarshal(data, &text) == nil:
		found["default"] = text
	case json.Unmarshal(data, &list) == nil:
		for _, t := range list {
			found[t.Name] = t.Template
		}
	case json.Unmarshal(data, &found) != nil:
		return nil, errors.New("neither a string nor a list of named templates")
	}
	return found, nil
}

// tokenNames are the tokens that templates find as variables.
var tokenNames = []string{"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}

// readTokens reads the tokens of tokenizer_config.json, and those of
// special_tokens_map.json where the former has no added_tokens_decoder: such
// checkpoints are of the time when the latter counted.
func readTokens(files map[string][]byte) (map[string]string, error) {
	tokens := map[string]string{}
	var config map[string]json.RawMessage
	for _, name := range []string{"tokenizer_config.json", "special_tokens_map.json"} {
		if files[name] == nil {
			continue
		}
		if _, modern := config["added_tokens_decoder"]; modern {
			break
		}
		config = nil
		if err := json.Unmarshal(files[name], &config); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		var extra map[string]json.RawMessage
		if json.Unmarshal(config["extra_special_tokens"], &extra) == nil { // else a list, or none
			for key, v := range extra {
				setToken(tokens, key, v)
			}
		}
		for _, key := range tokenNames {
			setToken(tokens, key, config[key])
		}
	}
	return tokens, nil
}

// setToken reads a token: text, or an object with its content.
func setToken(tokens map[string]string, key string, v json.RawMessage) {
	var text string
	var object struct{ Content string }
	switch {
	case json.Unmarshal(v, &text) == nil && text != "":
		tokens[key] = text
	case json.Unmarshal(v, &object) == nil && object.Content != "":
		tokens[key] = object.Content
	}
}

package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// ToolCall is a call of a function that a response asks for. Arguments is a JSON
// object.
type ToolCall struct {
	Name      string
	Arguments string
}

// The marks of a call, as the template writes them.
const (
	callOpen, callClose   = "<tool_call>", "</tool_call>"
	keyOpen, keyClose     = "<arg_key>", "</arg_key>"
	valueOpen, valueClose = "<arg_value>", "</arg_value>"
)

// CallMarks are all marks.
var CallMarks = []string{callOpen, callClose, keyOpen, keyClose, valueOpen, valueClose}

// SplitToolCalls splits a response into what it says and the calls that it asks for.
// tools is the JSON of the tools that the model was given: an argument is text where its
// schema says so, else the JSON value that it is, else text. Where a call is not whole or
// not as it should be, the response stays as it is, and err says why.
func SplitToolCalls(response string, tools []byte) (said string, calls []ToolCall, err error) {
	if !strings.Contains(response, callOpen) {
		return response, nil, stray(response)
	}
	texts := textArguments(tools)
	var b strings.Builder
	rest := response
	for {
		before, call, ok := strings.Cut(rest, callOpen)
		b.WriteString(before)
		if !ok {
			if err := stray(b.String()); err != nil {
				return response, nil, err
			}
			return strings.TrimSpace(b.String()), calls, nil
		}
		inside, after, ok := strings.Cut(call, callClose)
		if !ok {
			return response, nil, fmt.Errorf("call %d of a tool has no end", len(calls)+1)
		}
		c, err := parseCall(inside, texts)
		if err != nil {
			return response, nil, fmt.Errorf("call %d of a tool: %w", len(calls)+1, err)
		}
		calls = append(calls, c)
		rest = after
	}
}

// stray reports a mark that stands in no call.
func stray(text string) error {
	for _, mark := range CallMarks {
		if strings.Contains(text, mark) {
			return fmt.Errorf("%s stands in no call of a tool", mark)
		}
	}
	return nil
}

func parseCall(text string, texts map[[2]string]bool) (c ToolCall, err error) {
	name, rest, _ := strings.Cut(text, keyOpen)
	if rest != "" {
		rest = keyOpen + rest
	}
	if c.Name = strings.TrimSpace(name); c.Name == "" || strings.ContainsAny(c.Name, "<>\n") {
		return c, errors.New("it has no name of a function")
	}
	args := []byte{'{'}
	seen := map[string]bool{}
	for rest = strings.TrimSpace(rest); rest != ""; rest = strings.TrimSpace(rest) {
		var key, value string
		if key, rest, err = between(rest, keyOpen, keyClose); err != nil {
			return c, err
		}
		if value, rest, err = between(strings.TrimSpace(rest), valueOpen, valueClose); err != nil {
			return c, err
		}
		if key = strings.TrimSpace(key); seen[key] {
			return c, fmt.Errorf("argument %q is there twice", key)
		}
		seen[key] = true
		if len(args) > 1 {
			args = append(args, ',')
		}
		args = append(append(appendJSON(args, key), ':'), argument(value, texts[[2]string{c.Name, key}])...)
	}
	c.Arguments = string(append(args, '}'))
	return c, nil
}

// between takes a marked text from the front of s.
func between(s, open, close string) (inside, after string, err error) {
	s, ok := strings.CutPrefix(s, open)
	if ok {
		inside, after, ok = strings.Cut(s, close)
	}
	if !ok {
		return "", "", fmt.Errorf("there is no %s…%s where one should be", open, close)
	}
	return inside, after, nil
}

// argument is a value as JSON.
func argument(value string, text bool) []byte {
	if v := strings.TrimSpace(value); !text && json.Valid([]byte(v)) {
		var b bytes.Buffer
		if json.Compact(&b, []byte(v)) == nil {
			return b.Bytes()
		}
	}
	return appendJSON(nil, value)
}

func appendJSON(to []byte, s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // text
	return append(to, bytes.TrimRight(b.Bytes(), "\n")...)
}

// textArguments are the functions' arguments whose schema says that they are text.
func textArguments(tools []byte) map[[2]string]bool {
	var list []json.RawMessage
	var text string
	if json.Unmarshal(tools, &text) == nil {
		tools = []byte(text)
	}
	if json.Unmarshal(tools, &list) != nil {
		return nil
	}
	type function struct {
		Name       string `json:"name"`
		Parameters struct {
			Properties map[string]struct {
				Type any `json:"type"`
			} `json:"properties"`
		} `json:"parameters"`
	}
	found := map[[2]string]bool{}
	for _, raw := range list {
		if json.Unmarshal(raw, &text) == nil {
			raw = json.RawMessage(text)
		}
		var tool struct {
			function
			Function function `json:"function"`
		}
		if json.Unmarshal(raw, &tool) != nil {
			continue
		}
		for _, f := range []function{tool.function, tool.Function} {
			for name, p := range f.Parameters.Properties {
				if p.Type == "string" {
					found[[2]string{f.Name, name}] = true
				}
			}
		}
	}
	return found
}

// OpenAI are calls as OpenAI's messages have them: a JSON list. id begins their ids.
func OpenAI(calls []ToolCall, id string) string {
	type function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	type call struct {
		ID       string   `json:"id"`
		Type     string   `json:"type"`
		Function function `json:"function"`
	}
	list := make([]call, len(calls))
	for i, c := range calls {
		list[i] = call{fmt.Sprintf("call_%s_%d", id, i), "function", function(c)}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(list) // texts
	return strings.TrimRight(b.String(), "\n")
}

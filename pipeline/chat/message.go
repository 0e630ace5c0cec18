package chat

import (
	"errors"
	"fmt"
	"strings"

	"glmbatch/pipeline/chat/jinja"
)

// messages decodes and cleans the input's messages.
func (in *Input) messages() (*jinja.List, error) {
	if in.Messages == nil && in.Turns != nil {
		return fromTurns(in.Turns), nil
	}
	list, err := decodeList(in.Messages)
	if err != nil {
		return nil, fmt.Errorf("messages: %w", err)
	}
	if in.Sparse {
		tools, err := in.tools()
		if err != nil {
			return nil, err
		}
		sparse(list, nullable(tools))
	}
	for i, v := range list.Items {
		m, ok := v.(*jinja.Dict)
		if !ok {
			return nil, fmt.Errorf("message %d: not an object", i)
		}
		if list.Items[i], err = cleanMessage(m); err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
	}
	return list, nil
}

// decodeList decodes an array, or JSON text of one in JSON.
func decodeList(data []byte) (*jinja.List, error) {
	v, err := jinja.ParseJSON(data)
	if err != nil {
		return nil, err
	}
	if text, ok := v.(string); ok {
		if v, err = jinja.ParseJSON([]byte(text)); err != nil {
			return nil, err
		}
	}
	list, ok := v.(*jinja.List)
	if !ok {
		return nil, errors.New("not an array")
	}
	return list, nil
}

// tools decodes the input's tools; nil: there are none.
func (in *Input) tools() (any, error) {
	if in.Tools == nil {
		return nil, nil
	}
	if strings.TrimSpace(string(in.Tools)) == "null" {
		return nil, nil
	}
	list, err := decodeList(in.Tools)
	if err != nil {
		return nil, fmt.Errorf("tools: %w", err)
	}
	for i, v := range list.Items {
		text, ok := v.(string)
		if !ok {
			continue
		}
		if list.Items[i], err = jinja.ParseJSON([]byte(text)); err != nil {
			return nil, fmt.Errorf("tool %d: %w", i, err)
		}
	}
	if in.SparseTools {
		dropNulls(list, nil)
	}
	for i, v := range list.Items {
		if _, ok := v.(*jinja.Dict); !ok {
			return nil, fmt.Errorf("tool %d: not an object", i)
		}
	}
	return list, nil
}

func fromTurns(turns []Turn) *jinja.List {
	list := &jinja.List{Items: make([]any, len(turns))}
	for i, t := range turns {
		m := jinja.NewDict(2)
		m.Set("role", t.Role)
		m.Set("content", t.Content)
		list.Items[i] = m
	}
	return list
}

// reasoningKeys are the names of a message's reasoning, the usual one first.
var reasoningKeys = []string{"reasoning_content", "thinking", "reasoning"}

// cleanMessage makes a message what templates expect (see the package's rules).
func cleanMessage(m *jinja.Dict) (*jinja.Dict, error) {
	if content, ok := m.Get("content"); !ok || content == nil {
		m.Set("content", "")
	}
	dropNullKeys(m)
	if role, ok := m.Get("role"); !ok || !isText(role) {
		return nil, errors.New("role is missing or not a string")
	}
	if parts, ok := get[*jinja.List](m, "content"); ok {
		for _, part := range parts.Items {
			if p, ok := part.(*jinja.Dict); ok {
				dropNullKeys(p)
			}
		}
	}
	if err := cleanCalls(m); err != nil {
		return nil, err
	}
	for _, key := range reasoningKeys {
		if v, ok := m.Get(key); ok {
			return aliasReasoning(m, v), nil
		}
	}
	return m, nil
}

// aliasReasoning puts a message's reasoning under the names that templates read.
// The order of keys is transformers'.
func aliasReasoning(m *jinja.Dict, reasoning any) *jinja.Dict {
	out := jinja.NewDict(m.Len() + 2)
	out.Set("thinking", reasoning)
	for i := range m.Len() {
		k, v := m.At(i)
		out.Set(k.(string), v)
	}
	out.Set("reasoning_content", reasoning)
	return out
}

func isText(v any) bool { _, ok := v.(string); return ok }

func get[T any](d *jinja.Dict, key string) (t T, ok bool) {
	if d == nil {
		return t, false
	}
	v, _ := d.Get(key)
	t, ok = v.(T)
	return t, ok
}

// cleanCalls decodes and cleans the tool calls of a message.
func cleanCalls(m *jinja.Dict) error {
	v, ok := m.Get("tool_calls")
	if !ok {
		return nil
	}
	if text, ok := v.(string); ok {
		var err error
		if v, err = jinja.ParseJSON([]byte(text)); err != nil {
			return fmt.Errorf("tool_calls: %w", err)
		}
		m.Set("tool_calls", v)
	}
	calls, ok := v.(*jinja.List)
	if !ok && v != nil {
		return errors.New("tool_calls: not an array")
	}
	if v == nil || len(calls.Items) == 0 {
		m.Keep(func(key string, _ any) bool { return key != "tool_calls" })
		return nil
	}
	for i, v := range calls.Items {
		call, ok := v.(*jinja.Dict)
		if !ok {
			return fmt.Errorf("tool call %d: not an object", i)
		}
		if err := cleanCall(call); err != nil {
			return fmt.Errorf("tool call %d: %w", i, err)
		}
	}
	return nil
}

// cleanCall cleans one tool call, with or without its "function".
func cleanCall(call *jinja.Dict) error {
	of := call
	if f, ok := get[*jinja.Dict](call, "function"); ok {
		dropNullKeys(call)
		of = f
	}
	a, ok := of.Get("arguments")
	switch a := a.(type) {
	case nil:
		if ok || of != call {
			of.Set("arguments", jinja.NewDict(0))
		}
	case string:
		if strings.TrimSpace(a) == "" {
			of.Set("arguments", jinja.NewDict(0))
			break
		}
		v, err := jinja.ParseJSON([]byte(a))
		if err != nil {
			return fmt.Errorf("arguments: not JSON: %w", err)
		}
		if v == nil {
			v = jinja.NewDict(0)
		}
		of.Set("arguments", v)
	}
	dropNullKeys(of)
	return nil
}

// dropNullKeys removes the keys of d that are null.
func dropNullKeys(d *jinja.Dict) { d.Keep(func(_ string, v any) bool { return v != nil }) }

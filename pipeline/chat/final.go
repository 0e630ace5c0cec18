package chat

import (
	"errors"
	"strings"
	"unicode"

	"glmbatch/pipeline/chat/jinja"
)

// continueTag is put after the text that a model is to go on with; the prompt
// is cut where it comes out. The space at its end tells whether the template
// trims the text.
const continueTag = "CONTINUE_FINAL_MESSAGE_TAG "

// ending is a final message that is continued.
type ending struct {
	message *jinja.Dict // nil: none
	text    string
}

// tag marks the end of the last message, if it is the assistant's and has text.
func (e *ending) tag(messages *jinja.List) bool {
	if len(messages.Items) == 0 {
		return false
	}
	m, ok := messages.Items[len(messages.Items)-1].(*jinja.Dict)
	if role, _ := get[string](m, "role"); !ok || role != "assistant" {
		return false
	}
	if content, ok := get[string](m, "content"); ok {
		e.message, e.text = m, content
		m.Set("content", content+continueTag)
		return true
	}
	parts, ok := get[*jinja.List](m, "content")
	if !ok {
		return false
	}
	for i := len(parts.Items) - 1; i >= 0; i-- {
		part, ok := parts.Items[i].(*jinja.Dict)
		if !ok {
			continue
		}
		if text, ok := get[string](part, "text"); ok {
			e.message, e.text = m, text
			part.Set("text", text+continueTag)
			return true
		}
	}
	return false
}

// cut ends a prompt where the final message's text does.
func (e *ending) cut(prompt string) (string, error) {
	at := strings.LastIndex(prompt, strings.TrimSpace(continueTag))
	if at < 0 || !strings.Contains(prompt, strings.TrimSpace(e.text)) {
		return "", errors.New("the final message cannot be continued: the chat template leaves out a part of its text")
	}
	if strings.HasPrefix(prompt[at:], continueTag) {
		return prompt[:at], nil
	}
	return strings.TrimRightFunc(prompt[:at], unicode.IsSpace), nil
}

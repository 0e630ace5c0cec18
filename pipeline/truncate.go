package pipeline

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"unicode/utf8"

	"glmbatch/pipeline/chat"
)

// What happens to a prompt that leaves no room in the model's context. A prompt is cut
// in its content, which is the texts of all messages but the system's: the template's
// own tokens, the system message and the tools stay.
const (
	OverlongError  = "error"           // the row fails with too_long
	OverlongHead   = "truncate"        // the content's first tokens go: of the oldest messages
	OverlongMiddle = "truncate-middle" // those in the middle
	OverlongTail   = "truncate-tail"   // the last
)

// overlongs are the values of Options.OnOverlong.
var overlongs = []string{OverlongError, OverlongHead, OverlongMiddle, OverlongTail}

// truncates reports whether prompts are cut to fit.
func (o *Options) truncates() bool { return o.OnOverlong != OverlongError && o.OnOverlong != "" }

// span is the place of n tokens that go, of all.
func span(side string, n, all int) (from, to int) {
	switch side {
	case OverlongMiddle:
		from = (all - n) / 2
	case OverlongTail:
		from = all - n
	}
	return from, from + n
}

// shorten cuts a prompt to at most keep tokens.
func (p *preparer) shorten(ctx context.Context, r *row, keep int) *rowError {
	whole := len(r.prompt)
	if r.input == nil { // without a template all is content
		from, to := span(p.o.OnOverlong, whole-keep, whole)
		r.prompt = slices.Delete(r.prompt, from, to)
		r.cut = whole - len(r.prompt)
		return nil
	}
	c, err := p.contentsOf(*r.input)
	if err != nil {
		return badRow(BadMessages, "column %s: %v", p.cols.prompt.Name, oneLine(err))
	}
	const tries = 8 // what is left of a text may have other tokens than it had in the whole
	for remove, i := whole-keep, 0; remove <= c.all && i < tries; i++ {
		in, err := c.without(span(p.o.OnOverlong, remove, c.all))
		if err != nil {
			return badRow(BadMessages, "column %s: %v", p.cols.prompt.Name, oneLine(err))
		}
		prompt, err := p.text.Template.Render(ctx, in)
		if err != nil {
			return badRow(TemplateError, "%v", oneLine(err))
		}
		if err := p.encode(r, prompt); err != nil {
			return err
		}
		remove += len(r.prompt) - keep
		if len(r.prompt) <= keep || remove > c.all && len(r.prompt) < p.o.Context { // or as short as it gets
			r.cut = whole - len(r.prompt)
			return nil
		}
	}
	return badRow(TooLong,
		"the prompt has %d tokens, of which content that may be cut are %d; the context has room for %d and one of "+
			"output", whole, c.all, p.o.Context-1)
}

// contents are the texts of a conversation that may be cut.
type contents struct {
	p        *preparer
	in       chat.Input
	messages []map[string]json.RawMessage // of in.Messages; nil: in has turns
	texts    []content
	all      int // tokens of all texts
}

// content is one text, at its place in the conversation.
type content struct {
	message, part int // part -1: the message's content is the text
	text          string
	tokens        []int32
}

func (p *preparer) contentsOf(in chat.Input) (*contents, error) {
	c := &contents{p: p, in: in}
	if in.Messages == nil {
		for i, t := range in.Turns {
			if !fixed(t.Role) {
				c.add(i, -1, t.Content)
			}
		}
		return c, nil
	}
	if err := json.Unmarshal(in.Messages, &c.messages); err != nil {
		return nil, err
	}
	for i, m := range c.messages {
		var role, text string
		if json.Unmarshal(m["role"], &role) != nil || fixed(role) {
			continue
		}
		var parts []map[string]json.RawMessage
		switch {
		case json.Unmarshal(m["content"], &text) == nil:
			c.add(i, -1, text)
		case json.Unmarshal(m["content"], &parts) == nil:
			for k, part := range parts {
				if json.Unmarshal(part["text"], &text) == nil {
					c.add(i, k, text)
				}
			}
		}
	}
	return c, nil
}

// fixed are the roles whose messages are not cut.
func fixed(role string) bool { return role == "system" || role == "developer" }

func (c *contents) add(message, part int, text string) {
	if text == "" {
		return
	}
	tokens := c.p.text.Tokenizer.Encode(nil, text)
	c.texts = append(c.texts, content{message, part, text, tokens})
	c.all += len(tokens)
}

// without is the conversation without the content's tokens from..to.
func (c *contents) without(from, to int) (chat.Input, error) {
	in, at := c.in, 0
	in.Turns = slices.Clone(in.Turns)
	messages := slices.Clone(c.messages)
	for _, t := range c.texts {
		x, y := max(0, from-at), min(len(t.tokens), to-at)
		at += len(t.tokens)
		if x >= y {
			continue
		}
		left := t.text[:c.offset(t, x, false)]
		text := left + t.text[max(len(left), c.offset(t, y, true)):]
		if c.messages == nil {
			in.Turns[t.message].Content = text
			continue
		}
		m, err := replaced(messages[t.message], t.part, text)
		if err != nil {
			return in, err
		}
		messages[t.message] = m
	}
	var err error
	if c.messages != nil {
		in.Messages, err = json.Marshal(messages)
	}
	return in, err
}

// replaced is a message with another text.
func replaced(m map[string]json.RawMessage, part int, text string) (map[string]json.RawMessage, error) {
	value, err := json.Marshal(text)
	if err == nil && part >= 0 {
		var parts []map[string]json.RawMessage
		if err = json.Unmarshal(m["content"], &parts); err == nil {
			parts[part]["text"] = value
			value, err = json.Marshal(parts)
		}
	}
	other := maps.Clone(m)
	other["content"] = value
	return other, err
}

// offset is where token k of a text begins, moved to the end (up) or the beginning of
// the character that it lies in.
func (c *contents) offset(t content, k int, up bool) int {
	if k == len(t.tokens) {
		return len(t.text)
	}
	n := min(len(c.p.text.Tokenizer.Decode(t.tokens[:k], false)), len(t.text))
	for n > 0 && n < len(t.text) && !utf8.RuneStart(t.text[n]) {
		if up {
			n++
		} else {
			n--
		}
	}
	return n
}

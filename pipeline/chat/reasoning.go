package chat

import "strings"

// SplitReasoning splits a model's answer into what it thought and what it said.
// Open tells that the prompt ended inside <think>; otherwise reasoning counts
// only if the answer starts with <think>. Without </think> the text is the
// response: a model that was cut short has said nothing else. White space around
// both parts is dropped if there was reasoning; an answer without any is returned
// as it is.
func SplitReasoning(text string, open bool) (reasoning, response string) {
	const start, end = "<think>", "</think>"
	rest, opened := strings.CutPrefix(strings.TrimLeft(text, " \t\r\n"), start)
	if !open && !opened {
		// A prompt that ends with </think>, or no reasoning at all.
		return "", strings.TrimPrefix(text, end)
	}
	reasoning, response, ended := strings.Cut(rest, end)
	if !ended {
		return "", text
	}
	return strings.TrimSpace(reasoning), strings.TrimSpace(response)
}

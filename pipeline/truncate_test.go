package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"glmbatch/datasets"
)

// prepared is the only row of a line, with its prompt as text.
func prepared(t rapid.TB, in *datasets.Input, text Text, o Options) (*row, string) {
	p, err := NewPlan(in, o)
	if err != nil {
		t.Fatal(err)
	}
	reader := in.Reader(0, 1)
	defer reader.Close()
	records, err := reader.Read()
	if err != nil {
		t.Fatal(err)
	}
	r := (&preparer{cols: p.cols, text: text, o: &p.Options}).row(context.Background(), records[0])
	return r, text.Tokenizer.Decode(r.prompt, false)
}

// TestTruncateContent: what is cut is what messages say.
func TestTruncateContent(t *testing.T) {
	text := demoText(t)
	words := make([]string, 300)
	for i := range words {
		words[i] = fmt.Sprintf("w%d", i)
	}
	long := strings.Join(words, " ")
	line := func(v any) *datasets.Input {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return linesOf(t, string(b))
	}
	type message map[string]any
	parts := []message{{"type": "text", "text": long}, {"type": "text", "text": "and then?"}}
	for name, in := range map[string]*datasets.Input{
		"prompt": line(message{"prompt": long, "system": "Be brief, and kind."}),
		"messages": line(message{"messages": []message{{"role": "system", "content": "Be brief, and kind."},
			{"role": "user", "content": long}, {"role": "assistant", "content": "yes"},
			{"role": "user", "content": long}}}),
		"parts": line(message{"messages": []message{{"role": "system", "content": "Be brief, and kind."},
			{"role": "user", "content": parts}}}),
	} {
		_, whole := prepared(t, in, text, Options{})
		for side, want := range map[string][2]bool{OverlongHead: {false, true}, OverlongMiddle: {true, true},
			OverlongTail: {true, false}} {
			o := Options{Context: 256, OnOverlong: side}
			o.Params.MaxTokens = 56
			r, got := prepared(t, in, text, o)
			if r.err != nil || len(r.prompt) > 200 || len(r.prompt) < 190 || r.cut <= 0 {
				t.Errorf("%s, %s: %d tokens, %d cut, %+v", name, side, len(r.prompt), r.cut, r.err)
				continue
			}
			// The template's own tokens are those of the whole prompt, in their order.
			marks := func(s string) (m []string) {
				for _, f := range strings.SplitAfter(s, "<|")[1:] {
					m = append(m, f[:strings.Index(f, "|>")])
				}
				return m
			}
			if !slices.Equal(marks(got), marks(whole)) || !strings.Contains(got, "Be brief, and kind.") {
				t.Errorf("%s, %s: the prompt is %q", name, side, got)
			}
			if name != "parts" && (strings.Contains(got, "w0 ") != want[0] ||
				strings.Contains(got, "w299") != want[1]) {
				t.Errorf("%s, %s: the content left is wrong: %q", name, side, got)
			}
		}
	}
	in := line(message{"prompt": "short", "system": long})
	if r, _ := prepared(t, in, text, Options{Context: 256, OnOverlong: OverlongTail}); r.err == nil ||
		r.err.code != TooLong || r.cut != 0 {
		t.Errorf("a long system message: %+v", r.err)
	}
}

// Whatever the texts are, a prompt that was cut fits, and is valid text.
func TestTruncateProperties(t *testing.T) {
	text := demoText(t)
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SampledFrom([]string{"ab ", "é", "日本", "\n", "😀", "0123456789", "<|user|>", " ", "x"})
		var messages []map[string]string
		for range rapid.IntRange(1, 4).Draw(t, "messages") {
			content := strings.Join(rapid.SliceOfN(word, 0, 120).Draw(t, "words"), "")
			messages = append(messages, map[string]string{"role": rapid.SampledFrom([]string{"user", "assistant"}).Draw(
				t, "role"), "content": content})
		}
		b, err := json.Marshal(map[string]any{"messages": messages})
		if err != nil {
			t.Fatal(err)
		}
		in, err := datasets.OpenStream(strings.NewReader(string(b)), "lines")
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		o := Options{Context: rapid.IntRange(40, 90).Draw(t, "context"),
			OnOverlong: rapid.SampledFrom(overlongs[1:]).Draw(t, "side")}
		r, got := prepared(t, in, text, o)
		if r.err == nil && (len(r.prompt) >= o.Context || r.params.MaxTokens < 1 || strings.Contains(got, "\uFFFD")) {
			t.Fatalf("%d tokens in a context of %d: %q", len(r.prompt), o.Context, got)
		}
		if r.err != nil && r.err.code != TooLong {
			t.Fatalf("%+v", r.err)
		}
	})
}

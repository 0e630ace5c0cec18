package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"glmbatch/pipeline/chat"
	"glmbatch/pipeline/tokenizer"
	"glmbatch/units"
)

type tokenizeOptions struct {
	SkipSpecial bool
	Chat        bool
}

func newModelTokenizeCommand() *cobra.Command {
	var o tokenizeOptions
	c := &cobra.Command{
		Use:   "tokenize MODEL [FILE]",
		Short: "Turn lines of JSON into token ids and back",
		Long: `tokenize reads lines {"text": "…"} from FILE, or from standard input, and writes
for each a line {"ids": […], "decoded": "…"}: the ids of the text by MODEL's
tokenizer.json, and the text of those ids. MODEL is a folder, demo, or a name on
the hub whose files are in Hugging Face's local cache.

With --chat, lines are {"messages": […]}, with "tools", "enable_thinking" and
other arguments of the chat template if wanted; "text" in the output is what the
template makes of them, up to the start of the assistant's turn.

A line that is not so ends the program with exit code 3 and an error that names
its number; the lines before it are written.`,
		Example: `  echo '{"text": "Hello world"}' | glmbatch model tokenize models/GLM-5
  echo '{"messages": [{"role": "user", "content": "What is 3 + 4?"}]}' | glmbatch model tokenize demo --chat
  glmbatch model tokenize models/GLM-5 chats.jsonl --chat | jq -c .ids`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 && len(args) != 2 {
				return withCode(exitInput,
					fmt.Errorf("%s takes a folder and perhaps a file, not %d arguments (see '%s --help')",
						c.CommandPath(), len(args), c.CommandPath()))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			in, name := c.InOrStdin(), "standard input"
			if len(args) == 2 {
				f, err := os.Open(args[1])
				if err != nil {
					return withCode(exitInput, err)
				}
				defer f.Close()
				in, name = f, args[1]
			}
			return runModelTokenize(c.Context(), c.OutOrStdout(), in, name, args[0], o)
		},
	}
	f := c.Flags()
	f.BoolVar(&o.SkipSpecial, "skip-special", false, "leave special tokens out of the decoded text")
	f.BoolVar(&o.Chat, "chat", false, "lines are chats for the model's chat template")
	return c
}

// tokenizeLine is an output line.
type tokenizeLine struct {
	Text    *string `json:"text,omitempty"` // with --chat
	IDs     []int32 `json:"ids"`
	Decoded string  `json:"decoded"`
}

func runModelTokenize(ctx context.Context, w io.Writer, in io.Reader, name, dir string, o tokenizeOptions) error {
	var files map[string][]byte
	at, err := textFolder(dir)
	if err == nil {
		files, err = readTextFiles(at)
	}
	if err == nil && files["tokenizer.json"] == nil {
		err = fmt.Errorf("%s has no tokenizer.json", dir)
	}
	if err != nil {
		return withCode(exitInput, err)
	}
	tok, err := tokenizer.Load(files["tokenizer.json"])
	if err != nil {
		return withCode(exitInput, fmt.Errorf("reading %s: %w", dir, err))
	}
	text := lineText
	if o.Chat {
		template, err := chat.Read(files, "")
		if err != nil {
			return withCode(exitInput, fmt.Errorf("reading %s: %w", dir, err))
		}
		text = func(line []byte) (string, error) { return chatText(ctx, template, line) }
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLineBytes)
	out := bufio.NewWriter(w)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	n := 1
	for ; lines.Scan(); n++ {
		if err := ctx.Err(); err != nil {
			return withCode(exitInterrupted, err)
		}
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		s, err := text(lines.Bytes())
		if err != nil {
			return withCode(exitInput, errors.Join(fmt.Errorf("%s: line %d: %w", name, n, err), out.Flush()))
		}
		line := tokenizeLine{}
		if line.IDs, err = tok.TryEncode([]int32{}, s); err != nil {
			return withCode(exitInput, errors.Join(fmt.Errorf("%s: line %d: %w", name, n, err), out.Flush()))
		}
		line.Decoded = tok.Decode(line.IDs, o.SkipSpecial)
		if o.Chat {
			line.Text = &s
		}
		if err := enc.Encode(line); err != nil {
			return err
		}
	}
	err = lines.Err()
	if errors.Is(err, bufio.ErrTooLong) {
		err = fmt.Errorf("it is longer than %s", units.Bytes(maxLineBytes))
	}
	if err != nil {
		return withCode(exitInput, errors.Join(fmt.Errorf("%s: line %d: %w", name, n, err), out.Flush()))
	}
	return out.Flush()
}

// maxLineBytes is the longest line that is read.
const maxLineBytes = 64 << 20

// lineText reads {"text": "…"}.
func lineText(line []byte) (string, error) {
	var v struct {
		Text *string `json:"text"`
	}
	switch err := unmarshalLine(line, &v); {
	case err != nil:
		return "", err
	case v.Text == nil:
		return "", errors.New(`"text" is missing`)
	}
	return *v.Text, nil
}

// chatText reads {"messages": […], …} and renders it.
func chatText(ctx context.Context, t *chat.Template, line []byte) (string, error) {
	var v map[string]json.RawMessage
	if err := unmarshalLine(line, &v); err != nil {
		return "", err
	}
	in := chat.Input{Messages: v["messages"], Tools: v["tools"], AddGenerationPrompt: true, Kwargs: v}
	if in.Messages == nil {
		return "", errors.New(`"messages" is missing`)
	}
	if raw, ok := v["enable_thinking"]; ok && json.Unmarshal(raw, &in.EnableThinking) != nil {
		return "", errors.New(`"enable_thinking" is not true, false or null`)
	}
	if raw, ok := v["add_generation_prompt"]; ok && json.Unmarshal(raw, &in.AddGenerationPrompt) != nil {
		return "", errors.New(`"add_generation_prompt" is not true or false`)
	}
	for _, key := range []string{"messages", "tools", "enable_thinking", "add_generation_prompt"} {
		delete(v, key)
	}
	prompt, err := t.Render(ctx, in)
	return prompt.Text, err
}

func unmarshalLine(line []byte, v any) error {
	if !utf8.Valid(line) {
		return errors.New("not UTF-8")
	}
	err := json.Unmarshal(line, v)
	if bad := (*json.UnmarshalTypeError)(nil); errors.As(err, &bad) {
		return fmt.Errorf("a JSON %s is not expected there", bad.Value)
	}
	return err
}

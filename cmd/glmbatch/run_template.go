package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"unicode"

	"golang.org/x/term"

	"glmbatch/engine/checkpoint"
	"glmbatch/pipeline"
	"glmbatch/units"
)

// checkTemplate reports what is wrong with the flags of the chat template.
func (r *runFlags) checkTemplate() error {
	if r.templateArgs != "" {
		if err := json.Unmarshal([]byte(r.templateArgs), &r.rows.TemplateArgs); err != nil ||
			r.rows.TemplateArgs == nil {
			return fmt.Errorf("--chat-template-kwargs %.60q is not a JSON object, such as '{\"reasoning_effort\": "+
				"\"high\"}'", r.templateArgs)
		}
		if _, ok := r.rows.TemplateArgs["enable_thinking"]; ok && r.thinking != "auto" {
			return errors.New("--thinking and enable_thinking in --chat-template-kwargs are the same: give one")
		}
	}
	if r.rows.Raw {
		for flag, given := range map[string]bool{"--chat-template": r.template != "",
			"--chat-template-kwargs":   r.templateArgs != "",
			"--continue-final-message": r.rows.Continue, "--sanitize-control-tokens": r.sanitize} {
			if given {
				return fmt.Errorf("--raw uses no chat template: leave %s out", flag)
			}
		}
	}
	return nil
}

// textOptions reads the file of --chat-template, if it is one.
func (r *runFlags) textOptions() (pipeline.TextOptions, error) {
	o := pipeline.TextOptions{Raw: r.rows.Raw, Sanitize: r.sanitize}
	if r.template == "" {
		return o, nil
	}
	source, err := checkpoint.ReadSide(r.template)
	if errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(r.template, "/.") {
		o.Template = r.template
		return o, nil
	}
	if err == nil && source == nil {
		source = []byte{}
	}
	o.Source = source
	return o, err
}

// templateSettings are what decides the rows, besides the plan's settings. Without
// the flags a job is the same as before there were any.
func (r *runFlags) templateSettings(settings map[string]string, o pipeline.TextOptions) {
	switch {
	case o.Source != nil:
		h := sha256.Sum256(o.Source)
		settings["--chat-template"] = "sha256:" + hex.EncodeToString(h[:8])
	case o.Template != "":
		settings["--chat-template"] = o.Template
	}
	if r.sanitize {
		settings["--sanitize-control-tokens"] = "true"
	}
}

// show prints one row's prompt.
func (r *runFlags) show(ctx context.Context, w io.Writer, plan *pipeline.Plan, m *openedModel, say *speaker) error {
	p, err := plan.Prompt(ctx, m.text, r.showPrompt)
	if err != nil {
		return withCode(exitInput, err)
	}
	say.line("row %s: %s tokens, %s cut", units.Digits(r.showPrompt), units.Digits(int64(p.Tokens)),
		units.Digits(int64(p.Cut)))
	text := p.Text
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) { // what a row says must not steer the terminal
		text = strings.Map(func(c rune) rune {
			if c != '\n' && c != '\t' && !unicode.IsPrint(c) {
				return '\uFFFD'
			}
			return c
		}, text)
	}
	_, err = fmt.Fprintln(w, text)
	return err
}

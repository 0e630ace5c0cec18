package chat

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// maxTemplateBytes and maxBlockDepth bound a template; real ones have some
// 20 kB and nest about ten deep.
const (
	maxTemplateBytes = 256 << 10
	maxBlockDepth    = 100
)

// rewriter writes a template anew for the library; see the package comment.
type rewriter struct {
	segments []segment
	out      strings.Builder
	blocks   []block
	inside   int // loops and macros that are open
	serial   int // for names of its own
	builtins map[string]bool
}

// block is a statement that is not closed yet.
type block struct {
	end    string // the statement that closes it
	close  string // code before that statement, in the block
	after  string // code behind it
	turns  bool   // a loop or macro
	silent bool   // that statement is not written
}

// rewrite returns the code for the library and the builtins that it calls.
func rewrite(source string) (code string, used []string, err error) {
	if len(source) > maxTemplateBytes {
		return "", nil, fmt.Errorf("%d bytes, more than %d", len(source), maxTemplateBytes)
	}
	segments, err := scan(source)
	if err != nil {
		return "", nil, err
	}
	w := &rewriter{segments: segments, builtins: make(map[string]bool)}
	for i, s := range segments {
		if err := w.segment(i); err != nil {
			return "", nil, fmt.Errorf("line %d: %w", s.line, err)
		}
	}
	if n := len(w.blocks); n > 0 {
		return "", nil, fmt.Errorf("%s is missing at the end", w.blocks[n-1].end)
	}
	return w.out.String(), slices.Sorted(maps.Keys(w.builtins)), nil
}

func (w *rewriter) segment(i int) error {
	s := w.segments[i]
	switch s.kind {
	case text:
		w.text(s.text)
		return nil
	case output:
		code, err := w.expr(s.text, nil)
		if err != nil {
			return err
		}
		w.write("{{ (", code, ")", w.filter("print"), " }}")
		return nil
	}
	tokens, err := tokenize(s.text)
	if err != nil {
		return err
	}
	if len(tokens) == 0 || tokens[0].kind != tokenName {
		return errors.New("an empty statement")
	}
	word := tokens[0].text
	if strings.HasPrefix(word, "end") {
		return w.end(word)
	}
	do, ok := statements[word]
	if !ok {
		return fmt.Errorf("statement %q is not supported", word)
	}
	if len(w.blocks) > maxBlockDepth {
		return fmt.Errorf("blocks nested more than %d deep", maxBlockDepth)
	}
	return do(w, i, tokens[1:])
}

func (w *rewriter) write(parts ...string) {
	for _, p := range parts {
		w.out.WriteString(p)
	}
}

// text writes literal text as an output; in loops and macros it is counted.
func (w *rewriter) text(s string) {
	w.write("{{ ", quote(s))
	if w.inside > 0 {
		w.write(w.filter("print"))
	}
	w.write(" }}")
}

func (w *rewriter) use(builtin string) { w.builtins[builtin] = true }

func (w *rewriter) filter(builtin string) string {
	w.use(builtinPrefix + builtin)
	return "|" + builtinPrefix + builtin
}

func (w *rewriter) expr(source string, rename map[string]string) (string, error) {
	tokens, err := tokenize(source)
	if err != nil {
		return "", err
	}
	return w.exprTokens(tokens, rename)
}

func (w *rewriter) exprTokens(tokens []token, rename map[string]string) (string, error) {
	e := exprRewriter{tokens: tokens, rename: rename, used: w.use}
	return e.all()
}

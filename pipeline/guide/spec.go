package guide

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Kind is what a spec's text is. Its numbers are the module's.
type Kind uint8

// The kinds that the module reads.
const (
	Schema Kind = iota // a JSON schema, checked by NewSchema
	Regex              // a regular expression of the whole text, as Rust's regex has them
	Lark               // a grammar as llguidance reads Lark's
)

// Spec is what a text is to be. It is comparable. The zero Spec is none.
type Spec struct {
	Kind Kind
	Text string
}

// IsZero reports that a text is free.
func (s Spec) IsZero() bool { return s.Text == "" }

// mostText bounds a spec, in bytes.
const mostText = 1 << 20

func (s Spec) bound() error {
	if len(s.Text) > mostText {
		return fmt.Errorf("%d bytes are more than %d", len(s.Text), mostText)
	}
	return nil
}

// NewObject is any JSON object.
func NewObject(w Whitespace) Spec {
	s, err := NewSchema([]byte(`{"type":"object"}`), w)
	if err != nil {
		panic(err) // it is the same each time
	}
	return s
}

// NewRegex is a text that an expression matches from its start to its end.
func NewRegex(pattern string) (Spec, error) {
	if pattern == "" {
		return Spec{}, fmt.Errorf("the expression is empty")
	}
	return Spec{Regex, pattern}, nil
}

// mostChoices bounds those of one spec.
const mostChoices = 1 << 14

// NewChoice is one of some texts: an expression of them, as a grammar of thousands of
// alternatives is more than the module follows.
func NewChoice(texts []string) (Spec, error) {
	if len(texts) == 0 || len(texts) > mostChoices {
		return Spec{}, fmt.Errorf("%d choices are not 1 to %d", len(texts), mostChoices)
	}
	var b strings.Builder
	for i, t := range texts {
		if t == "" || !utf8.ValidString(t) {
			return Spec{}, fmt.Errorf("choice %d is empty, or not valid UTF-8", i)
		}
		if i > 0 {
			b.WriteByte('|')
		}
		b.WriteString(regexp.QuoteMeta(t))
	}
	return Spec{Regex, b.String()}, nil
}

// NewGrammar is a text of a grammar: Lark's, or EBNF as GBNF has it, which is known by
// its ::=.
func NewGrammar(text string) (Spec, error) {
	if strings.TrimSpace(text) == "" {
		return Spec{}, fmt.Errorf("the grammar is empty")
	}
	if len(text) > mostText {
		return Spec{}, fmt.Errorf("a grammar of %d bytes is longer than %d", len(text), mostText)
	}
	if !strings.Contains(text, "::=") {
		return Spec{Lark, text}, nil
	}
	lark, err := fromEBNF(text)
	if err != nil {
		return Spec{}, err
	}
	return Spec{Lark, lark}, nil
}

package guide

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Texts of expressions, choices and grammars are what these say.
func TestGrammars(t *testing.T) {
	g, tok := newGuides(t, Options{})
	odd := []string{"yes", "no", "\"maybe\"\n", "ünd/\\", "<b>&", "yes and no"}
	for _, c := range []struct {
		name, want string
		make       func() (Spec, error)
	}{
		{"expression", `^[a-f]{2,5}(-[0-9]+)?$`, func() (Spec, error) { return NewRegex(`[a-f]{2,5}(-[0-9]+)?`) }},
		{"choice", "", func() (Spec, error) { return NewChoice(odd) }},
		{"lark", `^a[0-9]+$`, func() (Spec, error) { return NewGrammar("start: \"a\" B+\nB: /[0-9]/\n") }},
		{"ebnf", `^(yes|([a-c]+,?){1,3})$`, func() (Spec, error) {
			return NewGrammar("root ::= \"yes\" | word{1,3}  # a comment\nword ::= [a-c]+ \",\"?\n")
		}},
		{"ebnf that goes on", `^x{2}( [^a-zA-Z\n" -@]{2}|é\\"|)*y?$`, func() (Spec, error) {
			return NewGrammar("root ::= \"x\"{2}\n  item*\n  (\"y\" | ) # none\nitem ::= ( \" \" " +
				"[^a-zA-Z\\n\\\"\\x20-\\x40]{2} ) | \"\\u00e9\\\\\\\"\" | \"\"\n")
		}},
		{"ebnf that recurs", `^y*x?$`, func() (Spec, error) { return NewGrammar(`root ::= ( "x" | "y" root? )`) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := c.make()
			if err == nil {
				err = g.Check(s)
			}
			if err != nil {
				t.Fatalf("%v: %s", err, s.Text)
			}
			rng, ended := seeded(3), 0
			for range 20 {
				text, done := sampleText(t, g, tok, s, rng, 80)
				switch {
				case !done:
					continue
				case c.want == "" && !slices.Contains(odd, text),
					c.want != "" && !regexp.MustCompile(c.want).MatchString(text):
					t.Errorf("%q", text)
				}
				ended++
			}
			if ended < 5 {
				t.Errorf("%d of 20 texts ended", ended)
			}
		})
	}
}

// What is no grammar is refused with the reason.
func TestRefusedGrammars(t *testing.T) {
	g, _ := newGuides(t, Options{})
	for _, c := range []struct {
		want string
		make func() (Spec, error)
	}{
		{"unclosed group", func() (Spec, error) { return NewRegex("(") }},
		{"empty", func() (Spec, error) { return NewRegex("") }},
		{"0 choices", func() (Spec, error) { return NewChoice(nil) }},
		{"choice 1 is empty", func() (Spec, error) { return NewChoice([]string{"a", ""}) }},
		{"empty", func() (Spec, error) { return NewGrammar(" \n") }},
		{"start", func() (Spec, error) { return NewGrammar("begin: \"a\"") }},
		{"no rule root", func() (Spec, error) { return NewGrammar(`x ::= "a"`) }},
		{"no rule y", func() (Spec, error) { return NewGrammar(`root ::= y`) }},
		{"line 2: the rule root is there twice", func() (Spec, error) {
			return NewGrammar("root ::= \"a\"\nroot ::= \"b\"")
		}},
		{"a literal has no end", func() (Spec, error) { return NewGrammar(`root ::= "a`) }},
		{"a class has no end", func() (Spec, error) { return NewGrammar(`root ::= [a-`) }},
		{"a group has no end", func() (Spec, error) { return NewGrammar(`root ::= ("a"`) }},
		{"is no range", func() (Spec, error) { return NewGrammar(`root ::= [z-a]`) }},
		{"is no number of times", func() (Spec, error) { return NewGrammar(`root ::= "a"{3,2}`) }},
		{"groups are more than 64 deep", func() (Spec, error) {
			return NewGrammar("root ::= " + strings.Repeat("(", 100))
		}},
		{"is longer than", func() (Spec, error) {
			return NewGrammar("root ::= \"" + strings.Repeat("a", mostText) + "\"")
		}},
	} {
		s, err := c.make()
		if err == nil {
			err = g.Check(s)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// FuzzEBNF: no grammar makes its reader panic or go on for ever.
func FuzzEBNF(f *testing.F) {
	for _, s := range []string{"root ::= \"yes\" | word{1,3}  # a\nword ::= [a-c]+ \",\"?\n",
		"root ::= (\"a\" | )* [^\\x41-\\x5a]", "root ::= .{2,}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := NewGrammar(text); err == nil && s.Kind != Lark {
			t.Error(s)
		}
	})
}

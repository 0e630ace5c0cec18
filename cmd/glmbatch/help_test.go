package main

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// Help fits 100 columns where there is no terminal, but for examples, which every
// command that does something has.
func TestHelp(t *testing.T) {
	var walk func(c *cobra.Command, path []string)
	walk = func(c *cobra.Command, path []string) {
		for _, sub := range c.Commands() {
			if sub.Name() == "completion" || sub.Name() == "help" {
				continue
			}
			walk(sub, append(path[:len(path):len(path)], sub.Name()))
		}
		code, out, _ := glmbatch(append(path[:len(path):len(path)], "--help")...)
		if code != exitOK {
			t.Fatalf("%v --help: exit code %d", path, code)
		}
		if !strings.Contains(out, "Usage:\n") {
			t.Fatalf("%v has no usage", path)
		}
		if name := c.Name(); len(path) > 0 && !c.HasSubCommands() && !strings.HasPrefix(out, name+" ") {
			t.Errorf("the help of %v does not begin with %q: %.40q", path, name, out)
		}
		examples := false
		for line := range strings.Lines(out) {
			line = strings.TrimSuffix(line, "\n")
			if strings.HasSuffix(line, ":") {
				examples = line == "Examples:"
			}
			if strings.Contains(line, "(default )") {
				t.Errorf("%v: a default without a value: %s", path, line)
			}
			if n := utf8.RuneCountInString(line); n > 100 && !examples {
				t.Errorf("%v: %d columns: %s", path, n, line)
			}
		}
		if !c.HasSubCommands() && !c.HasExample() {
			t.Errorf("%v has no example", path)
		}
	}
	walk(newRootCommand(), nil)

	_, out, _ := glmbatch("run", "--help")
	last := -1
	for _, want := range []string{"\nJob:\n", "\nRows and prompts:\n", "\nSampling", "\nEngine:\n",
		"\nTimeline and captures:\n"} {
		at := strings.Index(out, want)
		if at <= last {
			t.Errorf("heading %q is at %d, after %d", want, at, last)
		}
		last = at
	}
}

func TestOneLine(t *testing.T) {
	const from, want = "a.arrow: s\x00\x1b[2J\xffö — \"\u202e\"\nb\r", `a.arrow: s\x00\x1b[2J\xffö — "\u202e"; b\r`
	if got := oneLine(from); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestMistyped(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"reprot"}, "did you mean report?"},
		{[]string{"model", "inspct"}, "did you mean inspect?"},
		{[]string{"run", "--tp", "x"},
			`invalid argument "x" for "--tp" flag: it is not a whole number (see 'glmbatch run --help')`},
		{[]string{"run", "--tp", "99999999999999999999"}, "--tp\" flag: it is too large (see"},
		{[]string{"run", "--temperature", "warm"}, "--temperature\" flag: it is not a number (see"},
		{[]string{"run", "--quiet=maybe"}, "--quiet\" flag: it is not true or false (see"},
		{[]string{"run", "--step-timeout", "5"}, `missing unit in duration "5" (see`},
		{[]string{"diff", "a"}, "glmbatch diff takes two timelines, not 1 (see"},
		{[]string{"frobnicate"}, `has no command "frobnicate" (see`},
	} {
		code, _, errs := glmbatch(c.args...)
		if code != exitInput || !strings.Contains(errs, c.want) {
			t.Errorf("%v: exit code %d, %q", c.args, code, errs)
		}
	}
}

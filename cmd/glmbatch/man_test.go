package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// commands calls f for each command that does something.
func commands(c *cobra.Command, f func(*cobra.Command)) {
	for _, sub := range pages(c) {
		commands(sub, f)
	}
	f(c)
}

// TestManPages: each command has a page with all that --help says of it, which the
// formatter takes without a warning where there is one.
func TestManPages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man1")
	ends(t, exitOK, "man", "--dir", dir)
	groff, _ := exec.LookPath("groff")
	root := newRootCommand()
	root.InitDefaultCompletionCmd()
	n := 0
	commands(root, func(c *cobra.Command) {
		n++
		path := filepath.Join(dir, pageName(c)+".1")
		b, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
			return
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && !strings.Contains(string(b), roff("--"+f.Name)) {
				t.Errorf("%s lacks --%s", path, f.Name)
			}
		})
		if out := ends(t, exitOK, append([]string{"man"}, strings.Fields(c.CommandPath())[1:]...)...); out !=
			string(b) {
			t.Errorf("the page of %s is printed otherwise", c.CommandPath())
		}
		if groff == "" {
			return
		}
		out, err := exec.Command(groff, "-man", "-Tutf8", "-ww", "-z", path).CombinedOutput()
		if err != nil || len(out) > 0 {
			t.Errorf("%s: %v, %s", path, err, out)
		}
	})
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != n || n < 15 {
		t.Errorf("%d pages of %d commands, %v", len(entries), n, err)
	}
	if out := ends(t, exitInput, "man", "poem"); !strings.Contains(out, `no command "poem"`) {
		t.Error(out)
	}
}

// TestCompletion: shells get the values of flags, which help names and the flag takes.
func TestCompletion(t *testing.T) {
	complete := func(args ...string) []string {
		t.Helper()
		code, out, errs := glmbatch(append([]string{"__complete"}, args...)...)
		if code != exitOK {
			t.Fatalf("%v: exit code %d, %s", args, code, errs)
		}
		lines := strings.Split(strings.TrimSpace(out), "\n")
		for i := range lines {
			lines[i], _, _ = strings.Cut(lines[i], "\t")
		}
		return lines
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"run", "--device", ""}, "auto cpu cuda :4"},
		{[]string{"run", "--timeline", ""}, "auto off all every= :6"},
		{[]string{"run", "--out", ""}, ":16"},
		{[]string{"run", "--chat-template", ""}, ":0"},
		{[]string{"run", "--seed", ""}, ":4"},
		{[]string{"bench", "--capture", ""}, ":16"},
		{[]string{"bench", "--timeline", ""}, ":0"},
		{[]string{"run", ""}, ":0"},
		{[]string{"report", "--format", ""}, "text json csv markdown bench :4"},
		{[]string{"diff", "--format", ""}, "text json markdown :4"},
		{[]string{"export", ""}, "perfetto chrome :4"},
		{[]string{"export", "chrome", ""}, ":0"},
		{[]string{"man", "model", ""}, "inspect quantize synth tokenize verify :4"},
	} {
		if got := strings.Join(complete(c.args...), " "); got != c.want {
			t.Errorf("%v: %q, want %q", c.args, got, c.want)
		}
	}
	values := flagValues()
	used := map[string]bool{}
	commands(newRootCommand(), func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			key := f.Name
			if values[c.Name()+" "+f.Name] != nil {
				key = c.Name() + " " + f.Name
			}
			if values[key] == nil || f.Name == "machine" || f.Name == "what-if" || f.Name == "by" {
				return // which are listed elsewhere in the help
			}
			used[key] = true
			for _, v := range values[key] {
				word := strings.TrimSuffix(v, "=")
				if _, after, ok := strings.Cut(word, ":"); ok {
					word = after
				}
				if !regexp.MustCompile(`\b` + regexp.QuoteMeta(word) + `\b`).MatchString(f.Usage + " " + f.DefValue) {
					t.Errorf("%s --%s takes %s, and its help does not say so: %s", c.CommandPath(), f.Name, v, f.Usage)
				}
			}
		})
	})
	for key := range values {
		if !used[key] && key != "machine" && key != "what-if" && key != "by" {
			t.Errorf("no command has --%s", key)
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if out := ends(t, exitOK, "completion", shell); len(out) < 1000 {
			t.Errorf("%s: %s", shell, out)
		}
	}
}

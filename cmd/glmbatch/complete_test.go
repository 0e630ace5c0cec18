package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// zshCompletes types a line and a tab into a terminal, in which a zsh runs, until it has
// answered with a word.
const zshCompletes = `
zmodload zsh/zpty
zpty z "TERM=dumb PS1= zsh -f -i"
zpty -w z "fpath=($1 \$fpath); autoload -U compinit; compinit -u -D; print RE''ADY"
while zpty -r z line; do [[ $line == *READY* ]] && break; done
zpty -n -w z "$2"$'\t'
for i in {1..400}; do
	zpty -r -t z line && out+=$line
	[[ $out == *$3* ]] && break
	sleep 0.05
done
print -r -- "$out"
`

// TestShells: the scripts of completion do what they are for, in the shells that are here.
func TestShells(t *testing.T) {
	dir := t.TempDir()
	program := fmt.Sprintf("#!/bin/sh\nexec env %s=%s '%s' -test.run='^TestProgram$' -- \"$@\"\n", asProgram,
		ownArguments, os.Args[0])
	if err := os.WriteFile(filepath.Join(dir, "glmbatch"), []byte(program), 0o777); err != nil {
		t.Fatal(err)
	}
	for shell, file := range map[string]string{"zsh": "_glmbatch", "fish": "glmbatch.fish"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(ends(t, exitOK, "completion", shell)),
			0o666); err != nil {
			t.Fatal(err)
		}
	}
	fish := filepath.Join(dir, "glmbatch.fish")
	for _, c := range []struct {
		line string
		want []string // the last alone is waited for
	}{
		{"glmbatch run --device ", []string{"auto", "cpu", "cuda"}},
		{"glmbatch run --stdout ", []string{"arrow", "csv", "openai"}},
		{"glmbatch mod", []string{"model"}},
	} {
		for shell, args := range map[string][]string{
			"zsh":  {"-f", "-c", zshCompletes, "zsh", dir, c.line, c.want[len(c.want)-1]},
			"fish": {"--no-config", "-c", "source $argv[1]; complete -C $argv[2]", fish, c.line},
		} {
			if _, err := exec.LookPath(shell); err != nil {
				t.Logf("%s is not here", shell)
				continue
			}
			x := exec.Command(shell, args...)
			x.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "HOME="+dir)
			out, err := x.CombinedOutput()
			if err != nil {
				t.Errorf("%s, %q: %v: %s", shell, c.line, err, out)
			}
			for _, want := range c.want {
				if !strings.Contains(string(out), want) {
					t.Errorf("%s, %q: no %q in %q", shell, c.line, want, out)
				}
			}
		}
	}
}

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"glmbatch/golden"
	"glmbatch/kernels"
)

// README's tables are the program's.
func TestReadme(t *testing.T) {
	path := filepath.Join("..", "..", "README.md")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := string(b)
	for name, table := range map[string]string{"commands": commandTable(newRootCommand()), "kernels": kernelTable()} {
		open, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->"
		i, j := strings.Index(want, open), strings.Index(want, end)
		if i < 0 || j < i {
			t.Fatalf("README.md has no %s section", name)
		}
		want = want[:i+len(open)] + table + want[j:]
	}
	if want == string(b) {
		return
	}
	if !golden.Update() {
		t.Fatal("README.md's tables are not the program's: go test ./cmd/glmbatch -run Readme -update")
	}
	if err := os.WriteFile(path, []byte(want), 0o666); err != nil {
		t.Fatal(err)
	}
}

func commandTable(c *cobra.Command) string {
	var s strings.Builder
	s.WriteString("| command | what it does |\n|---|---|\n")
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			if sub.Hidden || sub.Name() == "help" || sub.Name() == "completion" {
				continue
			}
			if sub.HasSubCommands() {
				walk(sub)
				continue
			}
			use := strings.TrimPrefix(sub.CommandPath(), "glmbatch ")
			fmt.Fprintf(&s, "| `%s` | %s |\n", use, sub.Short)
		}
	}
	walk(c)
	return s.String()
}

// kernelTable has a line for the kernels that differ only in the number format.
func kernelTable() string {
	var s strings.Builder
	s.WriteString("| kernel | number formats | class | what it computes |\n|---|---|---|---|\n")
	type line struct{ stem, formats, classes, help string }
	var lines []line
	for _, k := range kernels.Table {
		stem, format := string(k.Name), ""
		if i := strings.LastIndexByte(stem, '_'); i > 0 {
			switch f := stem[i+1:]; f {
			case "f32", "bf16", "fp8", "fp8b", "fp4", "fp4a4", "fp4a8":
				stem, format = stem[:i], f
			}
		}
		help := k.Help
		if i := strings.Index(help, ", "); i > 0 && strings.HasSuffix(help, " weights") {
			help = help[:i]
		}
		if n := len(lines); n > 0 && lines[n-1].stem == stem {
			l := &lines[n-1]
			l.formats += " " + format
			if !strings.Contains(" "+l.classes+" ", " "+string(k.Class)+" ") {
				l.classes += " " + string(k.Class)
			}
			continue
		}
		lines = append(lines, line{stem, format, string(k.Class), help})
	}
	for _, l := range lines {
		fmt.Fprintf(&s, "| `%s` | %s | %s | %s |\n", l.stem, l.formats, l.classes,
			strings.ReplaceAll(l.help, "|", `\|`))
	}
	return s.String()
}

package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"glmbatch/datasets"
)

func newManCommand() *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use:   "man [COMMAND...]",
		Short: "Print a command's manual page, or write all of them",
		Long: `man prints the manual page of a command, or of the program, for man -l, or writes the
pages of all commands to the folder of --dir. They say what --help says.`,
		Example: `  glmbatch man run | man -l -
  glmbatch man --dir ~/.local/share/man/man1   # then: man glmbatch-run`,
		RunE: func(c *cobra.Command, args []string) error {
			if dir != "" {
				return withCode(exitOutput, writeManPages(c.Root(), dir))
			}
			of, rest, err := c.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return withCode(exitInput, fmt.Errorf("glmbatch has no command %q (see 'glmbatch --help')",
					strings.Join(args, " ")))
			}
			return manPage(c.OutOrStdout(), of)
		},
		ValidArgsFunction: func(c *cobra.Command, args []string, _ string) (names []string,
			_ cobra.ShellCompDirective) {
			if of, rest, err := c.Root().Find(args); err == nil && len(rest) == 0 {
				for _, sub := range pages(of) {
					names = append(names, sub.Name())
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
	c.Flags().StringVar(&dir, "dir", "", "write the pages of all commands to this `folder`")
	return c
}

// pages are the commands below one that have a page.
func pages(c *cobra.Command) (list []*cobra.Command) {
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" {
			list = append(list, sub)
		}
	}
	return list
}

// writeManPages writes a command's page and those of the commands below it.
func writeManPages(c *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	var b strings.Builder
	if err := manPage(&b, c); err != nil {
		return err
	}
	if err := datasets.WriteFile(filepath.Join(dir, pageName(c)+".1"), []byte(b.String())); err != nil {
		return err
	}
	for _, sub := range pages(c) {
		if err := writeManPages(sub, dir); err != nil {
			return err
		}
	}
	return nil
}

func pageName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// manPage writes a command's page in roff, of man's macros.
func manPage(w io.Writer, c *cobra.Command) error {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	name := pageName(c)
	p(`.TH "%s" "1" "" "%s" "glmbatch"`, roff(strings.ToUpper(name)), roff(versionText()))
	p(".SH NAME\n%s \\- %s", roff(name), roff(strings.ToLower(c.Short[:1])+c.Short[1:]))
	p(".SH SYNOPSIS\n.B %s\n%s", roff(c.CommandPath()),
		roff(strings.TrimPrefix(strings.TrimPrefix(useLine(c), c.CommandPath()), " ")))
	p(".SH DESCRIPTION\n.nf\n%s\n.fi", roff(strings.TrimRight(c.Long, "\n")))
	title := ""
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		of := "Options"
		if h := f.Annotations[headingKey]; h != nil {
			of = h[0]
		}
		if of != title {
			title = of
			p(".SH %s", roff(strings.ToUpper(of)))
		}
		value, usage := pflag.UnquoteUsage(f)
		flag := "--" + f.Name
		if f.Shorthand != "" {
			flag = "-" + f.Shorthand + ", " + flag
		}
		if value != "" {
			value = " \\fI" + roff(value) + "\\fR"
		}
		if d := f.DefValue; d != "" && d != "false" && d != "0" && d != "[]" && d != "0s" {
			usage += " (default " + d + ")"
		}
		p(".TP\n\\fB%s\\fR%s\n%s", roff(flag), value, roff(usage))
	})
	if c.HasExample() {
		p(".SH EXAMPLES\n.nf\n%s\n.fi", roff(c.Example))
	}
	if subs := pages(c); len(subs) > 0 {
		p(".SH COMMANDS")
		for _, sub := range subs {
			p(".TP\n.BR %s (1)\n%s", roff(pageName(sub)), roff(sub.Short))
		}
	}
	if c.HasParent() {
		p(".SH SEE ALSO\n.BR %s (1)", roff(pageName(c.Parent())))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// roff is text that the formatter prints as it is.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`, "\"",
		`\(dq`).Replace(s)
	var b strings.Builder
	for _, r := range s {
		if r < utf8.RuneSelf {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\[u%04X]`, r)
		}
	}
	lines := strings.Split(b.String(), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}

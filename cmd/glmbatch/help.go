package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
)

// headingKey is the annotation that says under which heading of the help a flag is.
const headingKey = "heading"

// heading puts the flags that were defined since the last call under a title.
func heading(f *pflag.FlagSet, title string) {
	f.VisitAll(func(x *pflag.Flag) {
		if x.Annotations[headingKey] == nil {
			if x.Annotations == nil {
				x.Annotations = map[string][]string{}
			}
			x.Annotations[headingKey] = []string{title}
		}
	})
}

// printUsage is the part of a command's help below its description: flags in the
// order of their definition, below their headings, as wide as the terminal.
func printUsage(c *cobra.Command) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Usage:\n  %s\n", useLine(c))
	if c.HasExample() {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", c.Example)
	}
	if c.HasAvailableSubCommands() {
		b.WriteString("\nCommands:\n")
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				fmt.Fprintf(&b, "  %-*s %s\n", sub.NamePadding(), sub.Name(), sub.Short)
			}
		}
	}
	b.WriteString(flagTables(c, helpWidth(c.OutOrStderr())))
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\n\"%s COMMAND --help\" says more about a command.\n", c.CommandPath())
	}
	_, err := io.WriteString(c.OutOrStderr(), b.String())
	return err
}

func useLine(c *cobra.Command) string {
	if c.HasAvailableSubCommands() {
		return c.CommandPath() + " COMMAND"
	}
	return c.UseLine()
}

// flagTables are a command's flags, a table for each heading.
func flagTables(c *cobra.Command, width int) string {
	c.Flags().SortFlags = false
	tables := map[string]*pflag.FlagSet{}
	var titles []string
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		title := "Flags"
		if h := f.Annotations[headingKey]; h != nil {
			title = h[0]
		}
		if tables[title] == nil {
			tables[title] = pflag.NewFlagSet(title, pflag.ContinueOnError)
			tables[title].SortFlags = false
			titles = append(titles, title)
		}
		tables[title].AddFlag(f)
	})
	var b strings.Builder
	for _, t := range titles {
		fmt.Fprintf(&b, "\n%s:\n%s", t, tables[t].FlagUsagesWrapped(width))
	}
	return b.String()
}

// helpWidth is that of the terminal, within what can be read well.
func helpWidth(w io.Writer) int {
	const least, most = 60, 100
	if f, ok := w.(*os.File); ok {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil {
			return min(max(n, least), most)
		}
	}
	return most
}

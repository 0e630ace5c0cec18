package report

import "strings"

// Wrap writes a text in lines of at most width columns, the later ones indented.
func Wrap(b *strings.Builder, text string, width int) {
	column := 0
	for _, word := range strings.Fields(text) {
		switch {
		case column == 0:
		case column+1+len(word) > width:
			b.WriteString("\n  ")
			column = 2
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	b.WriteByte('\n')
}

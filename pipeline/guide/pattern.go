package guide

import "strings"

// ecmaSpace is what \s is in ECMA-262, whose expressions JSON Schema has; other engines
// leave some of it out, so \s becomes what all have and \S what none has.
const (
	commonSpace = `\t\n\x0B\x0C\r `
	ecmaSpace   = `\t\n\x0B\x0C\r \x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}\x{FEFF}`
)

// pattern writes an expression so that what it matches here, it matches in all engines
// that JSON Schema is checked by: they differ in \s and in whether a dot is a carriage return.
func pattern(p string) string {
	var b strings.Builder
	class := false
	for i := 0; i < len(p); i++ {
		c := p[i]
		switch {
		case c == '\\' && i+1 < len(p):
			i++
			switch {
			case p[i] == 's' && class:
				b.WriteString(commonSpace)
			case p[i] == 's':
				b.WriteString("[" + commonSpace + "]")
			case p[i] == 'S':
				b.WriteString("[^" + ecmaSpace + "]")
			default:
				b.WriteByte(c)
				b.WriteByte(p[i])
			}
			continue
		case strings.HasPrefix(p[i:], `[\s\S]`) && !class, strings.HasPrefix(p[i:], `[\S\s]`) && !class:
			b.WriteString(`(?s:.)`)
			i += len(`[\s\S]`) - 1
			continue
		case c == '[' && !class:
			class = true
		case c == '[': // literal there; elsewhere it begins a class within
			b.WriteByte('\\')
		case c == ']' && class:
			class = false
		case c == '.' && !class:
			b.WriteString(`[^\n\r]`)
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}

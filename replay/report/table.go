package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// table is a table for people: the first column is text, the others are figures.
type table struct {
	head []string
	rows [][]string // nil: a rule
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }
func (t *table) rule()               { t.rows = append(t.rows, nil) }

// compact leaves out the columns that have no cell.
func (t table) compact() table {
	return t.keep(func(i int) bool {
		return slices.ContainsFunc(t.rows, func(r []string) bool { return i < len(r) && r[i] != "" })
	})
}

// Columns that a narrow terminal does without, in the order in which they go.
var dispensable = []string{"gap us", "GFLOP/s", "min us", "max us", "95 % of median", "95 % of it", "median us"}

// leastName is how much of the first column is worth more than another one.
const leastName = 18

// fit leaves out columns until the first one has room.
func (t table) fit(width int) table {
	for _, head := range dispensable {
		widths := t.widths()
		if rest := sum(widths[1:]) + 2*(len(widths)-1); rest+min(widths[0], leastName) <= width {
			return t
		}
		t = t.keep(func(i int) bool { return t.head[i] != head })
	}
	return t
}

func sum(n []int) int {
	total := 0
	for _, v := range n {
		total += v
	}
	return total
}

// widths are those of the columns, in characters.
func (t *table) widths() []int {
	widths := make([]int, len(t.head))
	for _, row := range append([][]string{t.head}, t.rows...) {
		for i, c := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	return widths
}

// keep leaves out columns, never the first.
func (t table) keep(column func(i int) bool) table {
	var keep []int
	for i := range t.head {
		if i == 0 || column(i) {
			keep = append(keep, i)
		}
	}
	pick := func(row []string) []string {
		var out []string
		for _, i := range keep {
			if i < len(row) {
				out = append(out, row[i])
			}
		}
		return out
	}
	c := table{head: pick(t.head)}
	for _, r := range t.rows {
		c.rows = append(c.rows, pick(r))
	}
	return c
}

// text writes the table no wider than width; the first column gives way.
func (t *table) text(w io.Writer, width int, bold func(string) string) error {
	widths := t.widths()
	total := sum(widths[1:]) + 2*(len(widths)-1)
	widths[0] = max(8, min(widths[0], width-total))
	var names []string
	for _, row := range t.rows {
		if row != nil {
			names = append(names, row[0])
		}
	}
	short := distinct(names, widths[0])
	line := func(cells []string) string {
		var b strings.Builder
		for i, n := range widths {
			c := ""
			if i < len(cells) {
				c = cells[i]
			}
			if i == 0 {
				if s, ok := short[c]; ok {
					c = s
				}
				c = shorten(c, n)
				fmt.Fprintf(&b, "%s%s", c, strings.Repeat(" ", n-utf8.RuneCountInString(c)))
				continue
			}
			fmt.Fprintf(&b, "  %s%s", strings.Repeat(" ", n-utf8.RuneCountInString(c)), c)
		}
		return strings.TrimRight(b.String(), " ")
	}
	if _, err := fmt.Fprintln(w, bold(line(t.head))); err != nil {
		return err
	}
	for _, row := range t.rows {
		s := line(row)
		if row == nil {
			s = strings.Repeat("─", total+widths[0])
		}
		if _, err := fmt.Fprintln(w, s); err != nil {
			return err
		}
	}
	return nil
}

// shorten cuts what tells least from a kernel's long name: its parameters, common
// namespaces, and then a part before the end.
func shorten(s string, n int) string {
	if utf8.RuneCountInString(s) > n {
		s = plainName(s)
	}
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	r := []rune(s)
	tail := n / 4
	return string(r[:n-tail-1]) + "…" + string(r[len(r)-tail:])
}

// distinct shortens names to n characters so that those that differ still do: of names
// that would become the same, the part in which they differ is shown.
func distinct(names []string, n int) map[string]string {
	same := map[string][]string{}
	out := map[string]string{}
	for _, name := range names {
		if _, ok := out[name]; !ok {
			s := shorten(name, n)
			out[name] = s
			same[s] = append(same[s], name)
		}
	}
	for _, group := range same {
		if len(group) < 2 {
			continue
		}
		used := map[string]bool{}
		for i, name := range group {
			s := showing([]rune(name), commonPrefix(name, group), n)
			if used[s] {
				number := fmt.Sprintf("…#%d", i+1)
				s = string([]rune(s)[:max(0, min(utf8.RuneCountInString(s), n-len([]rune(number))))]) + number
			}
			used[s] = true
			out[name] = s
		}
	}
	return out
}

// commonPrefix is for how many characters a name begins as the one of the others that
// is most like it.
func commonPrefix(name string, others []string) int {
	most := 0
	r := []rune(name)
	for _, other := range others {
		if other == name {
			continue
		}
		same := 0
		for _, c := range other {
			if same == len(r) || r[same] != c {
				break
			}
			same++
		}
		most = max(most, same)
	}
	return most
}

// showing cuts a name to n characters: its beginning, and what comes at a place.
func showing(r []rune, place, n int) string {
	if len(r) <= n {
		return string(r)
	}
	head := []rune(noise.Replace(string(r[:min(place, len(r))])))
	head = head[:min(len(head), n/3)]
	room := max(1, n-len(head)-1)
	from := max(0, min(place-2, len(r)-room))
	return string(head) + "…" + string(r[from:min(len(r), from+room)])
}

var noise = strings.NewReplacer("void ", "", "(anonymous namespace)::", "", "<unnamed>::", "", "at::native::", "",
	"c10::", "", "std::", "", "unsigned ", "u")

func plainName(s string) string {
	s = noise.Replace(s)
	if strings.HasSuffix(s, ")") {
		depth := 0
		for i := len(s) - 1; i > 0; i-- {
			switch s[i] {
			case ')':
				depth++
			case '(':
				if depth--; depth == 0 {
					return s[:i]
				}
			}
		}
	}
	return s
}

func (t *table) markdown(w io.Writer) error {
	var b strings.Builder
	line := func(cells []string) {
		b.WriteString("|")
		for i := range t.head {
			c := ""
			if i < len(cells) {
				c = strings.NewReplacer("|", "\\|", "\n", " ", "<", "&lt;", "*", "\\*").Replace(cells[i])
			}
			b.WriteString(" " + c + " |")
		}
		b.WriteString("\n")
	}
	line(t.head)
	b.WriteString("|---|" + strings.Repeat("---:|", len(t.head)-1) + "\n")
	for _, row := range t.rows {
		if row != nil {
			line(row)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

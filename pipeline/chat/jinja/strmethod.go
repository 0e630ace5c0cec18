package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// methodOf returns the method of v that has this name; nil if there is none.
func methodOf(v any, name string) *function {
	switch v.(type) {
	case string, markup:
		return strMethods[name]
	case *Dict:
		return dictMethods[name]
	case *List, *tuple, span:
		return listMethods[name]
	case int, bool:
		return intMethods[name]
	case float64:
		return floatMethods[name]
	case *cycler:
		return cyclerMethods[name]
	case *function:
		if v == any(globals["dict"]) && name == "fromkeys" {
			return dictMethods[name]
		}
	}
	return nil
}

// text returns a parameter that must be a string.
func (r *run) text(v any) string {
	s, ok := textOf(v)
	if !ok {
		use(v)
		typeError("expected str, not %s", typeName(v))
	}
	return s
}

// strDeclared are the methods of strings; a[0] is the string.
var strMethods map[string]*function

func init() { // not in the declaration: functions look into the tables
	strMethods = strTable(map[string]declared{
		"upper": {"s", func(r *run, a []any) any { return upperText(r.text(a[0])) }},
		"lower": {"s", func(r *run, a []any) any { return lowerText(r.text(a[0])) }},
		"casefold": {"s", func(r *run, a []any) any {
			return strings.ReplaceAll(lowerText(r.text(a[0])), "ß",
				"ss")
		}},
		"title":      {"s", func(r *run, a []any) any { return titleText(r.text(a[0])) }},
		"capitalize": {"s", func(r *run, a []any) any { return capitalize(r.text(a[0])) }},
		"swapcase":   {"s", func(r *run, a []any) any { return swapCase(r.text(a[0])) }},

		"strip":  {"s chars?", func(r *run, a []any) any { return r.strip(a, true, true) }},
		"lstrip": {"s chars?", func(r *run, a []any) any { return r.strip(a, true, false) }},
		"rstrip": {"s chars?", func(r *run, a []any) any { return r.strip(a, false, true) }},
		"removeprefix": {"s prefix", func(r *run, a []any) any {
			return strings.TrimPrefix(r.text(a[0]), r.text(a[1]))
		}},
		"removesuffix": {"s suffix", func(r *run, a []any) any {
			return strings.TrimSuffix(r.text(a[0]), r.text(a[1]))
		}},
		"replace":    {"s old new count?", strReplace},
		"join":       {"s iterable", strJoin},
		"split":      {"s sep? maxsplit?", func(r *run, a []any) any { return r.split(a, false) }},
		"rsplit":     {"s sep? maxsplit?", func(r *run, a []any) any { return r.split(a, true) }},
		"splitlines": {"s keepends?", splitLines},
		"partition": {"s sep", func(r *run, a []any) any {
			s, sep := r.text(a[0]), r.separator(a[1])
			if i := strings.Index(s, sep); i >= 0 {
				return r.three(s[:i], sep, s[i+len(sep):])
			}
			return r.three(s, "", "")
		}},
		"rpartition": {"s sep", func(r *run, a []any) any {
			s, sep := r.text(a[0]), r.separator(a[1])
			if i := strings.LastIndex(s, sep); i >= 0 {
				return r.three(s[:i], sep, s[i+len(sep):])
			}
			return r.three("", "", s)
		}},

		"startswith": {"s prefix start? end?", func(r *run, a []any) any { return r.affix(a, strings.HasPrefix) }},
		"endswith":   {"s suffix start? end?", func(r *run, a []any) any { return r.affix(a, strings.HasSuffix) }},
		"find":       {"s sub start? end?", func(r *run, a []any) any { return r.find(a, strings.Index) }},
		"rfind":      {"s sub start? end?", func(r *run, a []any) any { return r.find(a, strings.LastIndex) }},
		"index":      {"s sub start? end?", func(r *run, a []any) any { return found(r.find(a, strings.Index)) }},
		"rindex":     {"s sub start? end?", func(r *run, a []any) any { return found(r.find(a, strings.LastIndex)) }},
		"count": {"s sub start? end?", func(r *run, a []any) any {
			part, _, ok := r.part(a)
			if !ok {
				return 0
			}
			sub := r.text(a[1])
			if sub == "" {
				return runeCount(part) + 1
			}
			return strings.Count(part, sub)
		}},

		"isalpha":   {"s", func(r *run, a []any) any { return every(r.text(a[0]), unicode.IsLetter) }},
		"isdecimal": {"s", func(r *run, a []any) any { return every(r.text(a[0]), isDecimal) }},
		"isdigit":   {"s", func(r *run, a []any) any { return every(r.text(a[0]), isDigit) }},
		"isnumeric": {"s", func(r *run, a []any) any { return every(r.text(a[0]), isNumeric) }},
		"isspace":   {"s", func(r *run, a []any) any { return every(r.text(a[0]), isSpace) }},
		"isascii":   {"s", func(r *run, a []any) any { return isASCII(r.text(a[0])) }},
		"islower":   {"s", func(r *run, a []any) any { return isLower(r.text(a[0])) }},
		"isupper":   {"s", func(r *run, a []any) any { return isUpper(r.text(a[0])) }},
		"istitle":   {"s", func(r *run, a []any) any { return isTitle(r.text(a[0])) }},
		"isprintable": {"s", func(r *run, a []any) any {
			s := r.text(a[0])
			return s == "" ||
				every(s, unicode.IsPrint)
		}},
		"isalnum": {"s", func(r *run, a []any) any {
			return every(r.text(a[0]), func(c rune) bool { return unicode.IsLetter(c) || isNumeric(c) })
		}},
		"isidentifier": {"s", func(r *run, a []any) any {
			s := r.text(a[0])
			c, _ := utf8.DecodeRuneInString(s)
			return every(s, isWord) && !unicode.IsNumber(c)
		}},

		"center": {"s width fillchar?", func(r *run, a []any) any {
			s, n, fill := r.padding(a)
			left := n/2 + n&r.width(a)&1
			return strings.Repeat(fill, left) + s + strings.Repeat(fill, n-left)
		}},
		"ljust": {"s width fillchar?", func(r *run, a []any) any {
			s, n, fill := r.padding(a)
			return s +
				strings.Repeat(fill, n)
		}},
		"rjust": {"s width fillchar?", func(r *run, a []any) any {
			s, n,
				fill := r.padding(a)
			return strings.Repeat(fill, n) + s
		}},
		"zfill": {"s width", func(r *run, a []any) any {
			s, n, _ := r.padding([]any{a[0], a[1], missing})
			sign := ""
			if s != "" && (s[0] == '-' || s[0] == '+') {
				sign, s = s[:1], s[1:]
			}
			return sign + strings.Repeat("0", n) + s
		}},
		"expandtabs": {"s tabsize?", expandTabs},
		"format":     {"s * **", func(r *run, a []any) any { return r.braces(a[0], a[1].([]any), a[2].(*kwargs)) }},
		"format_map": {"s mapping", func(r *run, a []any) any {
			kw := &kwargs{}
			d, ok := a[1].(*Dict)
			if !ok {
				typeError("format_map() takes a mapping")
			}
			for i, k := range d.keys {
				if name, ok := textOf(k); ok {
					kw.names, kw.values = append(kw.names, name), append(kw.values, d.values[i])
				}
			}
			return r.braces(a[0], nil, kw)
		}},
	})
}

// strTable makes methods count what they read and make, and keep safe strings safe.
func strTable(table map[string]declared) map[string]*function {
	out := methodTable(table)
	for _, f := range out {
		do := f.do
		f.do = func(r *run, a []any) any {
			s, _ := textOf(a[0])
			r.make(2 * len(s))
			r.look(4 * len(s))
			v := do(r, a)
			if _, safe := a[0].(markup); safe {
				return asMarkup(v)
			}
			return v
		}
	}
	return out
}

func asMarkup(v any) any {
	switch v := v.(type) {
	case string:
		return markup(v)
	case *List:
		for i, x := range v.Items {
			v.Items[i] = asMarkup(x)
		}
	case *tuple:
		for i, x := range v.items {
			v.items[i] = asMarkup(x)
		}
	}
	return v
}

func (r *run) three(a, b, c string) any { return &tuple{items: []any{a, b, c}} }

func (r *run) separator(v any) string {
	sep := r.text(v)
	if sep == "" {
		fail("ValueError: empty separator")
	}
	return sep
}

func (r *run) strip(a []any, left, right bool) string {
	s, out := r.text(a[0]), isSpace
	if chars := orNone(a[1]); chars != nil {
		set := r.text(chars)
		r.look(len(set) * min(len(s), 1<<16)) // at worst each character is sought in all of them
		out = func(c rune) bool { return strings.ContainsRune(set, c) }
	}
	if left {
		s = strings.TrimLeftFunc(s, out)
	}
	if right {
		s = strings.TrimRightFunc(s, out)
	}
	return s
}

func strReplace(r *run, a []any) any {
	s, from, to := r.text(a[0]), r.text(a[1]), r.text(a[2])
	if _, safe := a[0].(markup); safe {
		to = string(r.escape(a[2]))
	}
	n := index(or(a[3], -1))
	hits := strings.Count(s, from)
	if n >= 0 {
		hits = min(hits, n)
	}
	if len(to) > 0 && hits > maxMade/len(to) {
		fail("replace: a string of %d times %d bytes", hits, len(to))
	}
	r.make(len(s) + hits*len(to))
	return strings.Replace(s, from, to, n)
}

func strJoin(r *run, a []any) any {
	sep := r.text(a[0])
	next := r.iterate(a[1])
	_, safe := a[0].(markup)
	var b strings.Builder
	n := 0
	for v, ok := next(); ok; v, ok = next() {
		s, ok := textOf(v)
		if safe {
			s, ok = string(r.escape(v)), true
		}
		if !ok {
			typeError("sequence item %d: expected str instance, %s found", n, typeName(v))
		}
		r.make(len(s) + len(sep))
		if n++; n > 1 {
			b.WriteString(sep)
		}
		b.WriteString(s)
	}
	return b.String()
}

// split is str.split and str.rsplit.
func (r *run) split(a []any, fromRight bool) any {
	s, most := r.text(a[0]), index(or(a[2], -1))
	var parts []string
	sepValue := orNone(a[1])
	r.items(len(s) / 2)
	switch {
	case sepValue == nil && fromRight:
		for s = strings.TrimRightFunc(s, isSpace); s != ""; {
			i := strings.LastIndexFunc(s, isSpace)
			if i < 0 || most >= 0 && len(parts) == most {
				parts = append(parts, s)
				break
			}
			_, n := utf8.DecodeRuneInString(s[i:])
			parts = append(parts, s[i+n:])
			s = strings.TrimRightFunc(s[:i], isSpace)
		}
	case sepValue == nil:
		for s = strings.TrimLeftFunc(s, isSpace); s != ""; {
			i := strings.IndexFunc(s, isSpace)
			if i < 0 || most >= 0 && len(parts) == most {
				parts = append(parts, s)
				break
			}
			parts = append(parts, s[:i])
			s = strings.TrimLeftFunc(s[i:], isSpace)
		}
	default:
		sep := r.separator(sepValue)
		for {
			i := strings.Index(s, sep)
			if fromRight {
				i = strings.LastIndex(s, sep)
			}
			if i < 0 || most >= 0 && len(parts) == most {
				parts = append(parts, s)
				break
			}
			if fromRight {
				parts = append(parts, s[i+len(sep):])
				s = s[:i]
			} else {
				parts = append(parts, s[:i])
				s = s[i+len(sep):]
			}
		}
	}
	l := &List{make([]any, len(parts))}
	for i, p := range parts {
		if fromRight {
			l.Items[len(parts)-1-i] = p
		} else {
			l.Items[i] = p
		}
	}
	return l
}

const lineEnds = "\n\r\v\f\x1c\x1d\x1e\u0085\u2028\u2029"

func splitLines(r *run, a []any) any {
	return &List{r.lines(r.text(a[0]), truth(or(a[1], false)))}
}

func (r *run) lines(s string, keep bool) []any {
	var out []any
	for s != "" {
		r.make(32)
		i := strings.IndexAny(s, lineEnds)
		if i < 0 {
			return append(out, s)
		}
		_, n := utf8.DecodeRuneInString(s[i:])
		if strings.HasPrefix(s[i:], "\r\n") {
			n = 2
		}
		if keep {
			out = append(out, s[:i+n])
		} else {
			out = append(out, s[:i])
		}
		s = s[i+n:]
	}
	return out
}

// part is the string between the parameters start and end, and how many
// characters come before it; not ok if start is past its end.
func (r *run) part(a []any) (part string, before int, ok bool) {
	s := r.text(a[0])
	if orNone(a[2]) == nil && orNone(a[3]) == nil {
		return s, 0, true
	}
	n := runeCount(s)
	clamp := func(v any, otherwise int) int {
		if v = orNone(v); v == nil {
			return otherwise
		}
		i := index(v)
		if i < 0 {
			i = max(max(i, -n-1)+n, 0)
		}
		return i
	}
	from, to := clamp(a[2], 0), min(clamp(a[3], n), n)
	if from > to {
		return "", 0, false
	}
	return cutText(r, s, &from, &to, nil), from, true
}

func (r *run) affix(a []any, has func(s, affix string) bool) bool {
	part, _, ok := r.part(a)
	if t, many := a[1].(*tuple); many {
		for _, x := range t.items {
			if ok && has(part, r.text(x)) {
				return true
			}
		}
		return false
	}
	affix := r.text(a[1])
	return ok && has(part, affix)
}

func (r *run) find(a []any, index func(s, sub string) int) int {
	part, before, ok := r.part(a)
	sub := r.text(a[1])
	if !ok {
		return -1
	}
	i := index(part, sub)
	if i < 0 {
		return -1
	}
	return before + runeCount(part[:i])
}

func found(i int) int {
	if i < 0 {
		fail("ValueError: substring not found")
	}
	return i
}

func (r *run) width(a []any) int { return index(a[1]) }

// padding returns the string, how many characters it lacks, and with what they
// are filled.
func (r *run) padding(a []any) (s string, n int, fill string) {
	s, fill = r.text(a[0]), r.text(or(a[2], " "))
	if runeCount(fill) != 1 {
		typeError("The fill character must be exactly one character long")
	}
	n = max(0, index(a[1])-runeCount(s))
	if n > maxMade/4 {
		fail("a string of %d characters", n)
	}
	r.make(n * len(fill))
	return s, n, fill
}

func expandTabs(r *run, a []any) any {
	s, size := r.text(a[0]), index(or(a[1], 8))
	if size > 0 && strings.Count(s, "\t") > maxMade/size {
		fail("expandtabs: a string of more than %d bytes", maxMade)
	}
	r.make(len(s) + max(size, 0)*strings.Count(s, "\t"))
	var b strings.Builder
	column := 0
	for _, c := range s {
		switch {
		case c == '\t':
			if size > 0 {
				n := size - column%size
				b.WriteString(strings.Repeat(" ", n))
				column += n
			}
			continue
		case c == '\n' || c == '\r':
			column = -1
		}
		column++
		b.WriteRune(c)
	}
	return b.String()
}

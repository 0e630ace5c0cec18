package layout

import (
	"regexp"
	"strconv"
	"strings"
)

// Field is a member of a struct; a union has no name.
type Field struct {
	Name         string
	Offset, Size int64
}

// Fields returns a struct's fields in their order, and its size. A template is given
// with its arguments, as Room<2>.
func (s *Source) Fields(name string) (fields []Field, size int64, err error) {
	defer fault(&err)
	e := expression{scope: scope{source: s}, tokens: tokens.FindAllString(name, -1)}
	t, at := e.structure(e.next())
	fields, size, _ = at.layout(t)
	return fields, size, nil
}

// sizes are size and alignment of the types that are none of the sources'.
var sizes = map[string][2]int64{
	"char": {1, 1}, "uint8_t": {1, 1}, "bool": {1, 1}, "uint16_t": {2, 2}, "int": {4, 4}, "unsigned": {4, 4}, "uint32_t": {4, 4}, "float": {4, 4},
	"u64": {8, 8}, "int64_t": {8, 8}, "long long": {8, 8}, "double": {8, 8}, "float2": {8, 8}, "uint2": {8, 8}, "int4": {16, 16}, "uint4": {16, 16}, "float4": {16, 16},
}

// sizeof is the size and the alignment of a type.
func (s scope) sizeof(name string) (size, align int64) {
	if b, ok := sizes[name]; ok {
		return b[0], b[1]
	}
	e := expression{scope: s, tokens: tokens.FindAllString(name, -1)}
	t, at := e.structure(e.next())
	_, size, align = at.layout(t)
	return size, align
}

// member is alignment, type and names.
var member = regexp.MustCompile(`^(?:(?:alignas|__align__)\((\d+)\)\s*)?(?:const\s+|volatile\s+)*(long long|union|\w+(?:<[^>]*>)?)\s*(.*)$`)

// layout places what a struct has.
func (s scope) layout(t *structure) (fields []Field, size, align int64) {
	align = max(1, t.align)
	for _, d := range t.members() {
		m := member.FindStringSubmatch(d.text)
		if m == nil {
			s.fail("member %q", d.text)
		}
		least, _ := strconv.ParseInt(m[1], 10, 64) // digits, or nothing
		for _, one := range split(m[3]) {
			name, dims, _ := strings.Cut(one, "[")
			n, a := int64(8), int64(8) // of a pointer
			switch {
			case m[2] == "union":
				n, a = s.union(&structure{body: d.inner})
				name = ""
			case !strings.Contains(name, "*"):
				n, a = s.sizeof(m[2])
			}
			if dims != "" {
				n *= s.times(dims)
			}
			a = max(a, least)
			size, align = round(size, a), max(align, a)
			fields = append(fields, Field{strings.Trim(name, "* "), size, n})
			size += n
		}
	}
	return fields, round(size, align), align
}

// union is the size and the alignment of one with such members.
func (s scope) union(t *structure) (size, align int64) {
	fields, _, align := s.layout(t)
	for _, f := range fields {
		size = max(size, f.Size)
	}
	return round(size, align), align
}

// times is how many elements "2][n]" has; "]" has none.
func (s scope) times(dims string) int64 {
	n := int64(1)
	for dim := range strings.SplitSeq(dims, "[") {
		if dim = strings.TrimSpace(strings.TrimRight(dim, "] ")); dim == "" {
			return 0
		}
		n *= s.eval(dim)
	}
	return n
}

func round(n, to int64) int64 { return (n + to - 1) / to * to }

// declared is a member's text; that of a union has what it is of beside it.
type declared struct{ text, inner string }

// members are what a struct has in memory: not its functions and constants.
func (t *structure) members() (all []declared) {
	for body := t.body; ; {
		end := strings.IndexAny(body, ";{")
		if end < 0 {
			return all
		}
		text, inner := strings.TrimSpace(body[:end]), ""
		if body[end] == '{' {
			inner = block(body[end+1:])
			body = body[min(len(body), end+len(inner)+2):]
			if text != "union" { // a function, or a type of its own
				body = strings.TrimPrefix(body, ";")
				continue
			}
			if end = strings.IndexByte(body, ';'); end < 0 {
				return all
			}
			text += body[:end]
		}
		body = body[end+1:]
		if !strings.HasPrefix(text, "static ") && text != "" {
			all = append(all, declared{text, inner})
		}
	}
}

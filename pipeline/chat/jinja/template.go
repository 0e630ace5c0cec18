package jinja

import (
	"context"
	"time"
	"unicode/utf8"
)

// Template is a parsed template.
type Template struct {
	body  []stmt
	names []string  // of variables, by id
	base  []any     // their values before a render: global functions, or missing
	Now   time.Time // what strftime_now says; zero: the time of the call
	lits  []string  // the text of the template and its string literals
	ids   map[string]int
}

// missing is the value of a variable that has none.
type absent struct{}

var missing any = absent{}

// Parse reads the source of a template. Errors are [*Error].
func Parse(source string) (t *Template, err error) {
	if len(source) > maxSource {
		return nil, &Error{Text: "a template of more than 1 MiB"}
	}
	if !utf8.ValidString(source) { // characters are counted and cut as such
		return nil, &Error{Text: "the template is not UTF-8: save it as that"}
	}
	p := &parser{uses: map[string]int{}, names: map[string]int{}}
	line := func() int {
		if p.tokens == nil {
			return 0
		}
		return p.line()
	}
	defer catch(&err, line, func() any { return nil })
	p.tokens = lex(source)
	body, _ := p.body()
	if len(p.unknown) > 0 {
		return nil, p.unknown[0]
	}
	t = &Template{body: body, names: p.ordered, ids: p.names}
	for _, name := range t.names {
		t.base = append(t.base, global(name))
	}
	for _, k := range p.tokens {
		if k.kind == tokData || k.kind == tokString {
			t.lits = append(t.lits, k.text)
		}
	}
	return t, nil
}

func global(name string) any {
	if f := globals[name]; f != nil {
		return f
	}
	return missing
}

// Literals are the template's own text: what stands outside of tags, and its
// string literals.
func (t *Template) Literals() []string { return t.lits }

// Uses tells whether the template reads or sets a variable of this name.
func (t *Template) Uses(name string) bool { _, ok := t.ids[name]; return ok }

// Render runs the template with its variables. size is about how many bytes they
// have; a larger input has a larger budget. Errors are [*Error].
func (t *Template) Render(ctx context.Context, vars map[string]any, size int) (s string, err error) {
	r := &run{t: t, budget: newBudget(ctx, size), out: make([]byte, 0, 256+size+size/4)}
	r.vars = append(make([]any, 0, len(t.base)), t.base...)
	for name, v := range vars {
		if id, ok := t.ids[name]; ok {
			r.vars[id] = v
		}
	}
	defer catch(&err, func() int { return r.line }, func() any { return r.item })
	if err := ctx.Err(); err != nil {
		return "", &Error{Text: "stopped", Cause: err}
	}
	r.block(t.body)
	return string(r.out), nil
}

// run is one render.
type run struct {
	budget
	t     *Template
	vars  []any  // of the whole template, by id
	scope *scope // the innermost; nil: the whole template
	out   []byte
	line  int // of the statement or call that runs
	item  any // of the outermost loop
	loops int // how many loops run in each other
}

// scope are the variables of a loop's turn, a macro's call or a block.
type scope struct {
	parent *scope
	names  []int
	values []any
	kept   bool // a macro or generator refers to it: a loop must not use it again
}

func (r *run) push() *scope {
	r.scope = &scope{parent: r.scope}
	return r.scope
}

func (s *scope) set(id int, v any) {
	for i, n := range s.names {
		if n == id {
			s.values[i] = v
			return
		}
	}
	s.names, s.values = append(s.names, id), append(s.values, v)
}

// set gives a variable of the current scope its value.
func (r *run) set(id int, v any) {
	if r.scope == nil {
		r.vars[id] = v
		return
	}
	r.scope.set(id, v)
}

// get looks a variable up from the inside out.
func (r *run) get(id int) any {
	for s := r.scope; s != nil; s = s.parent {
		for i, n := range s.names {
			if n == id && s.values[i] != missing {
				return s.values[i]
			}
		}
	}
	return r.vars[id]
}

// keep marks the scopes that something refers to after they end.
func (r *run) keep() {
	for s := r.scope; s != nil && !s.kept; s = s.parent {
		s.kept = true
	}
}

// print writes a value to the output.
func (r *run) print(v any) {
	s, ok := v.(string)
	if !ok {
		s = r.str(v)
	}
	r.make(len(s))
	r.out = append(r.out, s...)
}

// capture returns what do writes, instead of writing it.
func (r *run) capture(do func() signal) (string, signal) {
	from := len(r.out)
	sig := do()
	s := string(r.out[from:])
	r.make(len(s))
	r.out = r.out[:from]
	return s, sig
}

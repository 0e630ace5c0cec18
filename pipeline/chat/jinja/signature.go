package jinja

import "strings"

// signature is a function's parameters: names with "?" may be left out, "*"
// stands for all further values and "**" for all further keywords.
type signature struct {
	params []param
	star   bool // a []any follows the params
	double bool // a *kwargs comes last
}

type param struct {
	name     string
	optional bool
}

// declared is a function as the tables have it.
type declared struct {
	signature string
	do        func(r *run, a []any) any
}

// methodTable parses the signatures of a table.
func methodTable(table map[string]declared) map[string]*function {
	out := make(map[string]*function, len(table))
	for name, d := range table {
		f := &function{name: name, do: d.do}
		for word := range strings.FieldsSeq(d.signature) {
			switch word {
			case "*":
				f.signature.star = true
			case "**":
				f.signature.double = true
			default:
				name, optional := strings.CutSuffix(word, "?")
				f.signature.params = append(f.signature.params, param{name, optional})
			}
		}
		out[name] = f
	}
	return out
}

// call binds arguments to parameters, one value each, missing where none was
// given, and runs the function.
func (f *function) call(r *run, pos []any, kw kwargs) any {
	r.step(1)
	s := &f.signature
	n := len(s.params)
	if len(kw.names) == 0 && len(pos) == n && !s.star && !s.double { // as most calls are
		return f.do(r, pos)
	}
	bound := make([]any, n, n+2)
	copy(bound, pos)
	for i := min(n, len(pos)); i < n; i++ {
		v, ok := kw.take(s.params[i].name)
		switch {
		case ok:
			bound[i] = v
		case s.params[i].optional:
			bound[i] = missing
		default:
			typeError("%s() missing required argument '%s'", f.name, s.params[i].name)
		}
	}
	switch {
	case s.star:
		bound = append(bound, pos[min(n, len(pos)):])
	case len(pos) > n:
		typeError("%s() takes at most %d arguments (%d given)", f.name, n, len(pos))
	}
	switch {
	case s.double:
		bound = append(bound, &kw)
	case len(kw.names) > 0:
		typeError("%s() got an unexpected keyword argument '%s'", f.name, kw.names[0])
	}
	return f.do(r, bound)
}

// or is v, or another value where none was given.
func or[T any](v any, otherwise T) any {
	if v == missing {
		return otherwise
	}
	return v
}

// orNone is v, or nil where none was given.
func orNone(v any) any {
	if v == missing {
		return nil
	}
	return v
}

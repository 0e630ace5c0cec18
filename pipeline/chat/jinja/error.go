package jinja

import "fmt"

// Error is what is wrong with a template or with what it was given. Inside the
// package it is a panic, from any depth of an expression up to Parse or Render.
type Error struct {
	Line   int   // of the template; 0: not known
	Raised bool  // by the template itself, with raise_exception
	Item   any   // what the outermost loop had at the time; nil: there was none
	Cause  error // of another package; nil: none
	Text   string
}

func (e *Error) Error() string {
	if e.Line > 0 && !e.Raised {
		return fmt.Sprintf("line %d: %s", e.Line, e.Text)
	}
	return e.Text
}

func (e *Error) Unwrap() error { return e.Cause }

// fail ends the render or the parse with an error.
func fail(format string, args ...any) {
	panic(&Error{Text: fmt.Sprintf(format, args...)})
}

// typeError says that an operation does not take a value of some type.
func typeError(format string, args ...any) { fail("TypeError: "+format, args...) }

// catch turns the panic of fail into err. Other panics are faults of this
// package, which a foreign template must not make the program's end.
func catch(err *error, line func() int, item func() any) {
	switch p := recover().(type) {
	case nil:
	case *Error:
		if p.Line == 0 {
			p.Line = line()
		}
		p.Item = item()
		*err = p
	default:
		*err = &Error{Line: line(), Item: item(), Text: fmt.Sprintf("a fault of the evaluator: %v", p)}
	}
}

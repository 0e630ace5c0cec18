// Package jinja runs Jinja templates as the Python library Jinja2 does with the
// settings of transformers' chat templates: an immutable sandbox, trim_blocks,
// lstrip_blocks, break and continue, the generation block, tojson without HTML
// escapes, raise_exception and strftime_now.
//
// A [Template] is made by [Parse] and is safe for concurrent use. Values are
// Python's: nil (None), bool, int, *big.Int beyond 64 bits, float64, string,
// [*List], [*Dict], and types of the templates' own (tuples, ranges, macros,
// generators, undefined). Where Jinja2 raises an error, Render returns an [*Error].
//
// A template is foreign code. A render has a budget of steps and of bytes made
// (budget.go), a bound on the depth of calls and values, and stops when its
// context is done. There is no clock in the budget: the same input fails or not
// on every machine.
//
// Left out: inheritance and imports (there is one template), autoescape blocks,
// random and lipsum (a prompt must be the same twice), pprint, urlize, xmlattr.
// What prints an address in Python, a generator or a function, is an error.
package jinja

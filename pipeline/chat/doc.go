// Package chat turns messages into the text of a prompt with the model's own
// chat template, as transformers' apply_chat_template does, and splits a
// model's answer into reasoning and response.
//
// A [Template] comes from chat_template.jinja or tokenizer_config.json ([Read],
// [Load]); [Template.Render] takes an [Input], whose messages and tools are JSON
// text, so that keys keep their order and numbers their digits.
//
// The templates are run by github.com/ardanlabs/jinja. Where it differs from
// Jinja2, the template is rewritten before it is compiled, from the same source
// text to the subset on which both agree:
//
//   - White space control is done here and text becomes string literals
//     (the library trims past neighbouring tags).
//   - Printing, filters, tests and the methods of strings are Python's: None,
//     True, 1.0, quoted lists; json.dumps; strip, split, rsplit, replace.
//   - A variable that is set in a loop starts each turn as it was outside.
//   - String escapes, number literals and "for a, b in c if d" are resolved.
//   - Statements, filters and tests that are not known are errors of Load, not
//     silence; so are "*" after "/", "//" or "%" without parentheses.
//
// Left as the library has them: arithmetic on mixed types, comparisons of
// different types, attributes of undefined values (undefined again, where Jinja2
// raises an error), and tuples, which print as lists.
//
// A template cannot run away: loop turns and macro calls, their depth, the text
// that is printed and each value that is kept are bounded, and passing a bound
// is an error. There is no clock in this: the same input fails or not everywhere.
package chat

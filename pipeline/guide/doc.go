// Package guide says which tokens may come next, so that a response is one of a JSON
// schema, a regular expression, a list of choices or a grammar.
//
// [Spec] is what a row asks for. [Guides], one for a tokenizer, read specs and make
// a [Matcher] for each response: it takes the tokens that were sampled and gives the set
// of those that may follow, which has the end tokens when the text is complete.
//
// The grammars are llguidance's (Rust, MIT), compiled to WebAssembly: the folder wasm has
// the sources of the module, and module.wasm.zst what they were built to. It runs in
// boxes, each with memory of its own and one matcher at work; a hostile schema breaks its
// box at most, which is made anew, and its row has an error.
//
// Caveats:
//
//   - Keywords of schemas that are not followed are refused by name, never passed over.
//   - What a grammar may cost is bounded by counts, so that the same spec always has
//     the same end; the bounds of time are far above those, and are for bugs.
//   - The set is of tokens, not of texts: a text may be spelled by other tokens than a
//     tokenizer would choose.
//   - Added tokens are never a part of a guided text.
package guide

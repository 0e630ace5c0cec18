// Package units writes figures for people, and reads sizes that people write. Files and
// JSON have the plain integers.
//
// There are no types: [Bytes], [Count], [Digits] and [ParseBytes].
package units

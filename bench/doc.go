// Package bench times decode and prefill steps of a model at the shapes that are asked
// for, without prompts, and says what they cost: the time of a step, the time that its
// bytes alone would take, and where the time went.
//
// The types are [Model] with its weights, [Options], [Bench], which is a model on its
// ranks, and the [Result] of each [Case]: [Open], [Bench.Measure], [Bench.Write].
//
// Steps run through the ring that the engine runs its own through (engine/inflight), so
// that a step means the same. Timed steps alternate with recorded ones: what changes with
// time changes both.
package bench

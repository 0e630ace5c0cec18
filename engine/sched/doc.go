// Package sched decides what a step computes: which sequences, how many of
// their tokens and in which cache pages. It works on plain integers and knows
// no device.
//
// Its types are [Scheduler], [Seq] (one sequence), [Batch] (one step) and
// [Options]. A step is Next, the model's work, Commit.
//
// Sequences are served in the order of Add. Every running sequence that needs
// one token gets it; what is left of the token budget goes to prompts, in
// chunks. A prompt's pages are claimed when it is admitted, a generated token's
// when it is due. When pages run out, the newest running sequence gives all of
// its pages back and is computed again later: the oldest can always go on, so
// there is no deadlock, and the rule does not depend on timing.
package sched

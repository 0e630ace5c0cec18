// Package sched decides what a step computes: which sequences, how many of
// their tokens and in which cache pages. It works on plain integers and knows
// no device.
//
// Its types are [Scheduler], [Ranks] (of ranks that have sequences of their own), [Seq] (one
// sequence), [Batch] (one step) and [Options]; [Counter] tells what prompts share without running them. A step is
// Next, the model's work, Commit.
//
// Every running sequence that needs one token gets it; what is left of the token
// budget goes to prompts, in chunks. Of those that wait, the ones with the longest
// answers begin first, as far as lengths are known (Seq.Exact) or learnt from answers
// to prompts that begin alike, so that few are left alone at the end. No sequence is
// passed by more than 65,536 others. One begins when there are pages for its prompt,
// and for what it and those that run will add.
//
// What prompts have in common is computed once: all that wait or run are in a radix
// tree over their tokens, whose nodes keep the pages of what is computed until the last
// sequence below them ends. A sequence has these pages in its table; a page in whose
// middle it goes its own way is copied. While others compute what it needs, it waits.
// When more than half of the pages are in use, sequences whose prefix is there go before
// those that would begin another.
//
// When pages run out, the newest running sequence gives its own back and is computed
// again later: the oldest can always go on, so there is no deadlock, and the rule does
// not depend on timing. Pages that sequences to come need are let go only when the
// oldest is alone and has no other way.
package sched

package sched

import "math"

// Seq is one sequence: its prompt and what was generated so far.
type Seq struct {
	ID     int64
	Tokens []int32 // the prompt, then the output; who samples appends
	Prompt int     // tokens of the prompt
	Max    int     // most tokens, prompt and output; 0: the context
	Exact  bool    // it will have Max tokens: nothing else ends it
	Whole  bool    // all of its prompt is computed, and each of its rows may want logits
	Held   bool    // it has no part in the next step, and keeps its place
	Drafts []int32 // tokens that may follow Tokens: see Propose

	// Set by the scheduler.
	Cached int     // tokens whose cache entries are written
	Ready  int     // tokens whose entries in the prediction layer's caches are written, at most Cached
	Pages  []int32 // page p holds the tokens [p·PageTokens, (p+1)·PageTokens)
	Seat   int     // row of the page table, below MaxSeqs on the first rank; -1: not running
	Rank   int     // that has it, see Ranks
	Shared int     // tokens of the prompt that others had computed when it first ran

	expect int   // tokens of output, as far as it is known
	order  int64 // of Add
	turn   int64 // of those that began to run; unknown: it has not yet
	place  int   // in the queue; -1: it runs
	others int   // pages that it began with and others had
	leaf   *node // of the tree; nil: nothing is shared
	work   int   // what it counts for on its rank
}

const unknown = math.MaxInt64

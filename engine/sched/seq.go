package sched

// Seq is one sequence: its prompt and what was generated so far.
type Seq struct {
	ID     int64
	Tokens []int32 // the prompt, then the output; who samples appends
	Prompt int     // tokens of the prompt
	Max    int     // most tokens, prompt and output; 0: the context

	// Set by the scheduler.
	Cached int     // tokens whose cache entries are written
	Pages  []int32 // page p holds the tokens [p·PageTokens, (p+1)·PageTokens)
	Seat   int     // row of the page table, below MaxSeqs; -1: not running

	order int64 // of Add
}

// due is the number of tokens that have no cache entry yet: 1 while decoding.
func (s *Seq) due() int { return len(s.Tokens) - s.Cached }

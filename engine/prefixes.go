package engine

import (
	"glmbatch/engine/sched"
	"glmbatch/kernels"
)

// Prefixes counts what prompts share without running them.
type Prefixes struct{ *sched.Counter }

// NewPrefixes returns a count of prompts of which an engine has so many at once.
func NewPrefixes(known int) Prefixes {
	return Prefixes{sched.NewCounter(max(1, known), kernels.PageTokens)}
}

package pipeline

import "sync/atomic"

// Counts are a job's totals. They are safe to read while it runs.
type Counts struct {
	Rows             atomic.Int64 // input rows written, with those of earlier runs of the job
	Samples          atomic.Int64 // output rows of this run
	Errors           atomic.Int64 // of them, with an error
	Truncated        atomic.Int64 // rows whose prompt was cut
	PromptTokens     atomic.Int64 // of this run, of each output row: n times a prompt's
	CompletionTokens atomic.Int64 // of this run
	Checked          atomic.Int64 // responses compared with the expected answer
	Correct          atomic.Int64 // of them, equal
}

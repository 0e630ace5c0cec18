// Package engine turns requests into tokens: Add a request, Step the model,
// until the engine is Idle. A step schedules a batch, runs the model's program on
// every rank and commits the tokens.
//
// Where the ranks run beside the host, a step is launched before the one before it
// has landed: what follows from lengths alone is known then (rows, positions,
// pages, ends by length), the tokens are taken on by the ranks. A sequence whose
// token turns out to be its last has a row in the next step for nothing.
//
// The types are [Engine] with its [Options], [Request] with its [Sampling], and
// [Token]. [StepInfo] and kernels.Trace go to those who observe steps.
//
// A request's tokens, to the last bit of their log-probabilities, depend on the
// request, the model, the number of ranks, their layout and the kind of device: not on other
// requests, their order, the limits in [Options], the number of threads, how many
// steps are on their way, or how often the request was preempted. Random numbers
// are keyed by the request's seed and the token's position. What requests in flight have
// in common at their beginning is computed once, and no bit tells.
//
// With [Speculation] a step gives several tokens of a request, with the same bits, whatever
// the request asks for: what steers the choice of a token knows the drafts in front of it as
// tokens of the output. A guide says which drafts may come. Tokens that end thinking are
// drafts of their own.
//
// Caveat: an engine is for one goroutine and has its model to itself.
package engine

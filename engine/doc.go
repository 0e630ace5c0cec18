// Package engine turns requests into tokens: Add a request, Step the model,
// until the engine is Idle. One Step schedules a batch, runs the model's
// program on every rank and commits the tokens.
//
// The types are [Engine] with its [Options], [Request] with its [Sampling], and
// [Token]. [StepInfo] and kernels.Trace go to those who observe steps.
//
// A request's tokens, to the last bit of their log-probabilities, depend on the
// request, the model, the number of ranks and the kind of device: not on other
// requests, their order, the limits in [Options], the number of threads, or how
// often the request was preempted. Random numbers are keyed by the request's
// seed and the token's position.
//
// Caveat: an engine is for one goroutine and has its model to itself.
package engine

// Package inflight launches the steps of a model and lands them, in order, and says
// when each was.
//
// The types are [Ring] and [Step]. At most kernels.MaxAhead steps are in flight: with
// one, a step is launched when the one before has landed; with more, the ranks have
// the next step when they are done with one. The engine, replays and benchmarks run
// their steps through a ring, so that a step's times mean the same in all of them.
//
// Caveat: after an error of Launch or Land a ring is of no more use.
package inflight

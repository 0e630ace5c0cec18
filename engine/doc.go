// Package engine turns requests into tokens: Add a request, Step the model,
// until the engine is Idle. One Step schedules a batch, runs the model's
// program on every rank and commits the tokens.
package engine

// Package telemetry says under what conditions a step ran: what the GPUs drew, at which
// clocks and how hot, and how much of the CPUs this process and others had.
//
// A [Reading] is how things were at a moment, [Between] what two of them say of the time
// between, and a [Sampler] takes readings beside the work, at a low rate. What cannot be
// known is nil or 0, never guessed. GPUs are read by a function that the caller has, as
// only some programs can ask their driver.
package telemetry

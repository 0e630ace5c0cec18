// Package timeline turns traces into timeline rows and timeline rows back into
// steps: [Rows] writes what a step did, [Reader] reads any timeline step by step,
// and the interval arithmetic under every attribution ([Union], [Sweeper]) is here.
//
// # What the rows of a timeline mean
//
// These rules hold for our own timelines and for imported ones alike. Rows are
// [datasets.Span]; what follows says how their columns are filled.
//
// Lanes. A lane whose name is "host", or begins with "host" and one of " .:",
// is a host lane; every other lane is a device lane.
//
//   - "device": a device of one rank of our own. "device 1", "device 2": calls of
//     it that may run at the same time as those of "device".
//   - "device (shared)": the same, of a device whose ranks share one memory and
//     one set of threads. Each rank's span is then the whole call, and a
//     replicated call, which ran once, has its bytes and FLOPs on rank 0 only:
//     sums over ranks are what the machine did.
//   - "stream 7": a stream of an import; its spans may overlap each other
//     (programmatic dependent launch).
//   - "host": the thread that drives the steps. Its phases (schedule, upload,
//     sample …) explain gaps of the device.
//   - "host.launch", "host.read", "host.tokenize", "host.write": goroutines beside
//     it. They explain no gap.
//   - "host.copies": between the host and a device of our own: from the start of the
//     first copy of a step's inputs to the end of the last, which may wait for the
//     host in between, and what the step brings back. They explain no gap either.
//   - "host 417": a thread of an import.
//
// Classes. Device rows have the class of their kernel, host rows the class
// "host". Evidence says what a host row is:
//
//   - "": a phase of ours.
//   - "step": the envelope of a step. Kernel is its kind (prefill, decode,
//     mixed) or the annotation that it was made from, which [KindOf] reads.
//   - "launch": a call that starts device work, matched with it by Correlation
//     within a rank. Any number of device rows may have one launch (a graph).
//   - "sync": the host waits for a device.
//   - "overhead": time that a profiler took.
//   - "api": any other call of a driver.
//
// Ranks count from 0. Rank -1 on a host row: it holds for all ranks.
//
// Steps count from 0. Step -1: the row belongs to no step (reading, writing, the
// time between steps). Device rows belong to the step that launched them, which
// need not be the one in whose envelope they ran.
//
// A timeline's metadata may have the period of each step and rank, with the time that
// the rank's device idled by cause ([datasets.Period]); imports do.
//
// Rows of a step should be near each other in a file: a reader holds a step until
// no later row group can have more of it.
package timeline

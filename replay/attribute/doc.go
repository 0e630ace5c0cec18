// Package attribute says what the time of steps was spent on.
//
// [New] makes an [Attribution]; [Attribution.Step] takes the rows of one step, and
// [Attribution.Sections] gives the result, one [Section] for each kind of step.
// Each step's own [Ledger]s are returned on the way.
//
// # The ledger
//
// For each step and rank, in integer nanoseconds and without exception:
//
//		wall = Σ self(class) + overlap + gaps + other steps + unexplained
//
//	  - wall: the step's period where the timeline has one (imports: the device's
//	    period where the host runs ahead); else from the earlier of the envelope's
//	    start and the first device start to the later of the envelope's end and the
//	    last device end. Device work that a step launched is the step's, also when it
//	    ran after its envelope.
//	  - self(class): kernels of that class ran, and of no other.
//	  - overlap: kernels of two or more classes ran, on one lane or several.
//	  - gap.launch: the device idled, and the kernel that it ran next was not launched
//	    yet: up to the end of its launch, never more than the gap.
//	  - gap.wait: the same, but the host was in a call that waits for the device;
//	    [Section.Waits] names the calls.
//	  - gap.queue: what it ran next was launched, and not begun.
//	  - gap.dependency: the same, and its stream had been free: work of another stream
//	    ended first.
//	  - gap.host: it idled while the driving thread was in a phase (schedule, upload,
//	    sample, …), or had launched nothing more.
//	  - gap.peers: it had ended its part of the step while another rank had not.
//	  - gap.profiler: a profiler held the host up.
//	  - other steps: it ran work of other steps, or of none.
//	  - unexplained: the rest.
//
// Imports store the period of each step and rank, and why its device idled, found
// where all threads and steps are known ([Options.Periods]); the gaps are then those. Elsewhere an idle stretch
// belongs to the first that fits, in the order profiler, launch by evidence, host,
// queue by evidence, peers; and what is shorter than LaunchGap, between two kernels
// of a list of ours, is the price of launching.
//
// # Gaps between kernels
//
// A row's Gap is for how long the device idled right before its kernels, inside
// the device's span of the step: which kernels a launch gap precedes. Where
// kernels start early (programmatic launch) our own spans begin when the kernels
// before have ended, so that a gap is what their end and the next start cost.
//
// # Waiting inside collectives
//
// A rank that arrives early spins inside the collective. That is part of the
// class's self time, and is split beside the ledger: waiting is from a rank's own
// start to the last rank's start, transfer is the rest. Collectives are paired
// by their order in the step; where that fails, nothing is split.
//
// # Caveats
//
//   - Self times by kernel, layer or call count time in which only one of those
//     ran; their sum may be less than that of the classes, and a row of overlap
//     says by how much.
//   - Spans that end before they start are left out and counted.
package attribute

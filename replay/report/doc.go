// Package report says what a timeline cost, in words, tables and pictures.
//
// [Load] reads a timeline of ours or an imported one and returns a [Report];
// [Formats] has what it can be written as. Times in tables are per step: means
// over steps and ranks, so that a table adds up to the wall time in its last row.
//
// [Compare] says what differs between two timelines. [Source.Export] writes the spans for
// trace viewers. [Source.Page] makes a page with pictures: one HTML file with its
// scripts (in page/) and the spans of some steps, which needs no network.
//
// # The JSON form
//
// Times are integer nanoseconds, sums over all steps and ranks of the report.
// The top level adds up all kinds of steps; kinds has each apart.
//
//	schema          "glmbatch.report/1"
//	source          what was read
//	rows            rows of the timeline that were read
//	by              what rows[] of kinds stand for: class, kernel, layer, rank, call,
//	                launch, operator, module, frame
//	machine         the machine that bounds are of: name and rates a second; null: none
//	steps, ranks    how many of each
//	rank_steps      pairs of a step and a rank: divide sums by it for a mean
//	shared          ranks share one machine: each rank's span is the whole call
//	wall_ns         the sum of ledger
//	device_span_ns  from the first device start to the last device end
//	classes[]       class, calls, self_ns (only this class ran), share (of
//	                device_span_ns), share_of_kernels (of total_ns of all kernels),
//	                total_ns (lengths of the spans), gap_ns (the device idled right
//	                before them, inside its span), bytes, wire_bytes, flops, gb_per_s,
//	                gflop_per_s (of a rank; of the machine where ranks share it),
//	                bound_ns (roofline; 0: unknown)
//	ledger          {class or entry: ns}; adds up to wall_ns. Entries that are no
//	                class: overlap, gap.host, gap.launch, gap.wait, gap.queue,
//	                gap.dependency, gap.peers, gap.profiler, other steps, unexplained
//	                (package attribute says what they are)
//	gpu_ns          lengths of all device spans of the report
//	outside         of device work that belongs to no step: calls, total_ns,
//	                classes[] {class, calls, total_ns}
//	host[]          phase, lane, calls, total_ns: the host's phases, inside and outside
//	                of steps; those of different lanes run at the same time
//	findings[]      code, kind, text: what stands out, the most important first
//	warnings[]      what was left out or cannot be told
//	kinds[]         kind (prefill, mixed, decode, step), and for its steps: steps,
//	                ranks, rank_steps, wall_ns, device_span_ns, classes, ledger as above,
//	                wall and device_span {median_ns, lo_ns, hi_ns, n} of one step with
//	                the 95 % interval, and where there is something to say:
//	                rows[] as classes with label, and per_step in both,
//	                waits[] {call, total_ns}: the calls in which the host waited
//	                while the device idled (gap.wait),
//	                comm {waiting_ns, transfer_ns, unsplit_ns, ranks[] {rank,
//	                collectives, waiting_ns, lag_ns, last}}
//	isolated[]      of a replay: kind, wall_ns, rows[] {label, calls, in_place_ns, warm_ns
//	                and cold_ns (the same calls each alone), marginal_ns (how much
//	                shorter the step is without the class), marginal_lo_ns,
//	                marginal_hi_ns, bound_ns}; 0: not measured
//	throughput[]    of a job: all its steps by kind, recorded or not, and all: kind, steps,
//	                sequences, tokens, sampled, wall_ns, median_ns, max_ns, max_step,
//	                tokens_per_s, sampled_per_s
//
// # The JSON form of a difference
//
//	schema, a, b    "glmbatch.diff/1" and what was compared
//	findings[]      in plain words
//	kinds[]         kind, steps [of A, of B], and of a step, in ns:
//	                wall, device_span, ledger[] (classes and gaps; their changes add up
//	                to the wall's) and kernels[] (by name, grid and class), each as
//	                {name, name_b (a kernel that does the same in B under another
//	                name), class, calls [A, B], a_ns, b_ns, change_ns (means over steps
//	                and ranks), a and b {median_ns, lo_ns, hi_ns, n}, verdict: faster,
//	                slower, same, cannot tell, only in A, only in B}
//	throughput[]    of two jobs: kind, a and b as in a report; null: none
//
// # Letters
//
// Names are shown with control characters, marks of direction and the like escaped,
// in all formats. Cells of a CSV file that a spreadsheet would run as formulas (they
// begin with =, +, -, @, a tab or a return) have an apostrophe before them, always.
//
// Golden files in testdata hold both schemas.
package report

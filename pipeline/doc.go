// Package pipeline turns prompt rows into result rows: it is the job.
//
// [Job.Run] is the whole of it. Rows stream through four goroutines' worth of work
// with bounded room between them: reading, tokenizing (many workers, order kept),
// the engine's steps, saving and writing. What is finished goes into a journal at
// once; parts are made of it in input order, so that one long row keeps no other
// from being saved. [Job] says what to run on what; [Params] are one
// row's sampling parameters; [Manifest] is what the output folder says of itself;
// [Recorder] writes steps and timelines.
//
// What holds for every job:
//
//   - The engine is given many rows ahead, within bounds of their number and bytes: it
//     finds what they share and begins with the long ones.
//   - Output rows are in input order, n of them for each input row, whatever the
//     order in which the engine finishes them.
//   - A row that cannot be run is a row with error_code and error, never the end
//     of the job.
//   - A row's random numbers depend on the run's seed, the row's place in the
//     input and the sample; see [SampleSeed]. Shards, resuming, batch limits and
//     neighbours change nothing.
//   - What is in the output folder under its own name is whole: after a crash the
//     same command goes on with the rows that neither a part nor the journal has.
//     The outputs are then the same bytes as without the crash.
package pipeline

// Package replay captures steps of a job and runs them again.
//
// A [Capture] is one step with all that it takes to run it again but the
// weights. A [Capturer] takes captures of a running job by [Selector]s such as
// "decode:every=500"; [Load] reads one from its file; [Run] runs it again,
// compares what comes out with what was recorded, bit for bit, and measures the
// kernels of the step in four ways, as a [Result]:
//
//   - in place: as the step runs, package attribute's self times;
//   - alone: each call by itself, on its own inputs, with a warm and a cold
//     cache; their sum over the step's wall time is the coverage, the part of
//     the step that benchmarks of single kernels would have explained;
//   - without it: how much shorter the step is without a class of calls;
//   - bound: the least time that the machine could need.
//
// # Why a capture is taken after its step
//
// A step reads cache entries of positions before its own, and writes those of
// its own before any call reads them: in each layer latent_write and index_write
// come before attention and the indexer, and layers share no entries. So what the
// written slots held before the step is never read, the entries after a step are
// as good an input as those before it, and a replay writes the same bytes to the
// same slots. A step can therefore be captured when it is known how slow it was.
// Page tables and pages are the batch's until the next step is scheduled.
//
// Buffers that all layers use in turn (routing, selections) hold the last layer's
// when a step is over. The capturer runs the step once more, stopping behind each
// call that chooses something, and checks on the way that the outcome is the
// same: a step that is not reproducible is not captured.
//
// # What a capture costs the job
//
// The thread that drives the steps is kept for the second run and for the
// download of at most [CaptureOptions.MaxBytes]. Encoding, hashing and writing
// are a goroutine's, with at most one capture being written and one waiting: the
// next that comes then is skipped and counted. A file that cannot be written
// costs the capture, never the job.
//
// # Files
//
// captures/step-00000042.arrow is an Arrow IPC file of [datasets.Capture] rows,
// which says what each row's columns are. The header's JSON is [Header]. Cached
// entries are those of whole pages, as the device holds them. With
// [KVSeeded] the file has a seed instead of entries, and outputs and selections
// are those of the step run once on the entries made from the seed; spans are
// always those of the job's own step.
//
// captures/row-00000017.arrow is a step that did not end: the last that a row had with
// which a step had failed before, or the program crashed. It was written before the step
// ran ([WriteBegun]): its header has the row, and it has a seed, but no outputs, choices
// and spans.
//
// # The JSON form of a result
//
// One document; of several captures the program prints a document a line.
//
//	schema     "glmbatch.replay/1"
//	capture    {file, step, kind, ranks, model, device, kv, recorded_wall_ns; rows, of the
//	           input, of a step that did not end}
//	device     the one that the step ran on again: {kind, name, detail}
//	verified   {mode, equal, compared, text}
//	wall       {median_ns, lo_ns, hi_ns, n} of the repeats
//	report     package report's document of the repeats, with isolated[] and again:
//	           {kind, rows[], wall, cause, text}, the step as it was recorded beside
//	           the repeats; cause is one of the Cause constants
//	coverage   {warm, cold}: sums of the calls alone over the median wall
//	what_if    null, or {name, note, same_tokens, tokens, wall, coverage, report,
//	           diff}: coverage is that of the captured calls alone over the changed
//	           step's wall; diff is package report's, from the step as it is
//
// Caveats: on a device whose ranks share memory and threads a call alone pays
// for waking the threads, which small calls in a list do not. A class that is left
// out leaves old values behind, which may be faster or slower to compute with.
package replay

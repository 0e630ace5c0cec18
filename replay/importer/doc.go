// Package importer turns GPU traces of other programs into timeline rows:
// torch.profiler JSON ([Torch]) and Nsight Systems exports ([Nsys]).
//
// A trace is read once, through a window of 1 MiB, into compact records. They
// are checked (gate.go), aligned across ranks, put into steps and layers, classed,
// sorted and handed on as [datasets.Span] rows. What the checks found comes back
// as [datasets.Finding] and is stored in the timeline's metadata. Nothing that
// was read is dropped without a finding that counts it.
//
// Memory is bounded by the GPU activities and API calls of the trace, not by its
// text: 76 bytes for each, some 40 for each API call's correlation, and the
// distinct names. That is about a tenth of the JSON; [Options.MaxRows] refuses
// more.
//
// # The rows
//
// Rows are sorted by start. Times are integer nanoseconds since the first row
// of all ranks; [Summary.EpochNS] is that moment on the trace's clock.
//
//   - Device rows are kernels, copies and memsets. Lane is "stream 7", or
//     "gpu 1 stream 7" where one file has several devices of one rank. Call is
//     -1. Rows of one lane may overlap (programmatic launch, branches of a
//     graph): never assume that a lane is in order.
//   - Host rows have Class "host" and a Lane that begins with "host". Evidence
//     says what they are:
//     "launch"    an API call that started GPU work (lane "host TID")
//     "sync"      an API call that waits for the GPU (lane "host TID")
//     "api"       any other CUDA or HIP call (lane "host TID")
//     "overhead"  time taken by the profiler itself (lane "host overhead")
//     "step"      the window of a step on the CPU (lane "host step"); Kernel
//     is the annotation. It contains the other host rows of the step.
//     API calls of one thread may nest (runtime over driver).
//   - There are no rows for gaps: whoever makes the ledger finds them between
//     the device rows of a (step, rank).
//
// Correlation joins a launch row to its device rows, within one rank. Many
// device rows may share one Correlation (a CUDA graph): the launch is there
// once, so its host time is charged once. A device row whose launch lies
// outside the recorded window has a Correlation that no host row has. Graph is
// the graph node's id, 0 outside of graphs.
//
// # Step and Layer
//
// Step is the annotation's number where the numbers are unique on the rank
// (ProfilerStep#12, decode_step.3), otherwise the ordinal from 0. -1: the row
// belongs to no step. A device row belongs to the step whose CPU window holds
// its launch, wherever the row itself lies in time; only rows without a
// recorded launch go by the device window of the annotation. Without
// annotations steps are the periods of the kernel-name sequence; where there
// is no period either, all rows are step 0. The host side of a step is its
// "step" row, or its API rows where it has none; the device side is first start
// to last end of its device rows. A step is launch-bound where the first is
// much longer than the busy time of the second.
//
// Layer comes from annotations (layer.N.*, layers.N) in the same way, or is the
// number of the repetition in the step's kernel-name sequence; -1: none. A
// finding says which of the ways was used.
//
// # Class and Evidence of device rows
//
// Class comes from one ordered table of name rules ([Rules]), or from
// kernels.Table for our own kernels; Evidence is "rule N", the rule's number,
// "user's rule N" or "kernel table". A product's class ends in the number format that
// its name tells, "?" where it does not; a softmax, a
// sort, an elementwise kernel or a reduction that a norm, a rotation, a router, an attention
// or a sampler launched, by its module, Python frame or annotation, or else by the kernels
// around it, has their class, and Evidence says so. "unclassified" is a class of its own. Copies and casts
// (copy.cast, copy.layout) have Bytes from the launch grid, at least numel*(in+out). A cast as
// large as the whole KV pool becomes kv.cast: Slots
// is the pool's slots, K its width, and Evidence is
// "rule 33; grid 556848 x 512 = 494976 slots x 576".
// memcpy.* rows have Bytes of memory traffic (device to device counts read and
// write).
//
// # Operator, Module and Frame
//
// Where a torch trace has the CPU's operators and calls of Python, a device row has those
// around the begin of its launch, on the launching thread: the innermost operator
// (aten::mm), the modules from the outermost in, without the numbers of their instances
// (Model/DecoderLayer/Linear), and the innermost call that is a line of Python. Empty: the
// launch lies in none, or is not in the trace.
//
// # Ranks
//
// Rank is distributedInfo's, the file name's (rank3, TP-3), or the caller's.
// An Nsight export has a rank for each (process, device), in that order; they
// share one clock. Torch files of several ranks are aligned on the ends of
// their collectives: an offset and a drift for each rank. They are refused
// where the collectives do not pair or the residual is above a bound.
//
// Truncated files have a finding "truncated": counts and sums are then lower
// bounds. Findings of severity "unreliable" mean that shares and rankings must
// be shown with that warning.
package importer

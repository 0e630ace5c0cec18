// Package record asks a running inference server for a trace of some decode steps.
//
// [Window] does all of it: it finds out which server answers (SGLang or vLLM), sends it
// requests until every one is decoding, starts the server's profiler for a number of
// steps, and waits until the trace of every rank is whole on this machine's disk. The
// profiler is stopped whatever happens, an interrupt included.
//
// What the servers take, and what differs:
//
//   - SGLang: POST /start_profile with output_dir, num_steps, activities, with_stack and
//     record_shapes. It stops by itself after num_steps forward passes and writes
//     ID-TP-0.trace.json.gz … into output_dir, on the server's disk.
//   - vLLM: POST /start_profile and /stop_profile, which exist only where the server was
//     started with a folder for traces. /stop_profile returns when all ranks have
//     written. Newer ones stop after max_iterations by themselves.
//
// Both have /v1/models and stream /v1/completions; a piece of the stream is taken for a
// decode step.
package record

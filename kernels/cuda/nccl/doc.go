// Package nccl calls NVIDIA's collective library, which is looked for when it is
// first wanted: nothing of it is needed to build or to start a program.
//
// There are two types: [Library], the functions found, and [Comm], a rank's place
// among ranks on GPUs of their own. A Comm's calls are enqueued on a stream.
//
// Caveat: a rank that does not come leaves the others' kernels waiting for ever;
// only the end of the process frees them.
package nccl

// Package cupti reads kernels' times from NVIDIA's profiling library, which it
// loads at run time: nothing is needed to build, and a machine without it only
// lacks the check of stamps.
//
// [Load] finds the library, Start and Stop turn recording on and off for the
// process, Take returns the kernels that have run. Times are on
// [kernels.Now]'s clock, as CUPTI converts the GPU's to it.
//
// Caveats: one profiler at a time can be attached to a process; recording makes
// each kernel of a graph a little slower.
//
// Without the build tag cuda the package has nothing.
package cupti

// Package driver opens NVIDIA's driver at run time, so that one binary starts on
// any machine: gorgonia.org/cu's functions go through trampolines that say "not
// initialised" where there is no driver, and a small binding beside it covers
// what cu lacks: launches with attributes and one struct of parameters, stream
// capture and graphs, pinned memory, function attributes.
//
// Without the build tag cuda the package is empty but for [Status].
package driver

// Package demo is a checkpoint of GLM-5's architecture with 11 million
// parameters and 1,000 prompts that it answers, both part of the program.
//
// The model was trained on synthetic instruction tasks (training/README.md says
// how), so that answers can be checked: 95 % of them are right, and the misses
// are sums and differences. It knows nothing else.
package demo

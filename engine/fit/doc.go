// Package fit says what a model takes of a machine's memory, and what that leaves for
// caches, before anything is loaded.
//
// The types are [Rank], what the weights take on a rank, [Room], the memory that there
// is, and [Fit], how the two go together. What steps and caches take the model's own
// arena says (glm5.Config.Need): nothing here mirrors it.
package fit

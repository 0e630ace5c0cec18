// Package synth makes models of random weights: configs from options ([Options]),
// checkpoints on disk ([Synth]) or in memory ([Checkpoint]), and names that they can be
// made from again ([Recipe], [Remake]).
//
// Weights follow from the seed and their names alone, and are scaled so that activations
// stay finite through all layers.
package synth

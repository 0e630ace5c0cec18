//go:build !race

package replay_test

// damages is how often each kind of damage is done.
const damages = 8

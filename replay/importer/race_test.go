//go:build race

package importer

// damages is how often each kind of damage is done: what reads files runs in one thread,
// so there is little for the race detector to see.
const damages = 3

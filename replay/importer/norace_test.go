//go:build !race

package importer

// damages is how often each kind of damage is done.
const damages = 8

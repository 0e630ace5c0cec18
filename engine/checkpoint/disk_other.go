//go:build !(linux || darwin || freebsd)

package checkpoint

// freeBytes is not known on this system.
func freeBytes(string) (int64, bool) { return 0, false }

//go:build !(linux || darwin || freebsd)

package checkpoint

// FreeBytes is not known on this system.
func FreeBytes(string) (int64, bool) { return 0, false }

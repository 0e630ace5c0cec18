//go:build !unix

package datasets

import "io/fs"

func foreign(fs.FileInfo) bool { return false }

// ForeignLink reports whether path is a link that another user made.
func ForeignLink(string) bool { return false }

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// writable faults a flag whose files cannot be written in a folder, before work
// whose results would be lost.
func writable(flag, dir string) error {
	f, err := os.CreateTemp(dir, ".glmbatch-*")
	if err == nil {
		err = errors.Join(f.Close(), os.Remove(f.Name()))
	}
	if err == nil {
		return nil
	}
	var at *fs.PathError
	if errors.As(err, &at) { // its path is of a file that nobody asked for
		err = at.Err
	}
	return fmt.Errorf("--%s: no file can be written in %s: %w; name another place", flag, dir, err)
}

// writableNew is writable for a folder that is made if there is none.
func writableNew(flag, dir string) error {
	_ = os.MkdirAll(dir, 0o777) // writable says what is wrong
	return writable(flag, dir)
}

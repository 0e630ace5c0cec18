//go:build !unix

package checkpoint

import (
	"io"
	"os"
)

// mapFile reads the file: there is no mapping on this system.
func mapFile(f *os.File, size int64) ([]byte, func() error, error) {
	b := make([]byte, size)
	if _, err := io.ReadFull(f, b); err != nil {
		return nil, nil, err
	}
	return b, func() error { return nil }, nil
}

func willNeed([]byte, int, int) {}

package pages

import (
	"errors"
	"fmt"
)

var (
	// ErrUnsupported marks what is valid, or may be, and is not read here.
	ErrUnsupported = errors.New("not supported")
	// ErrEncrypted marks files and columns that need a key.
	ErrEncrypted = errors.New("encrypted")
	// ErrDamaged marks what no writer means.
	ErrDamaged = errors.New("damaged")
)

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}

func unsupported(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnsupported, fmt.Sprintf(format, args...))
}

package bench

import (
	"errors"
	"fmt"
)

// What an error is about, for callers who tell them apart. What a device lacks or did
// wraps kernels.ErrMemory or kernels.ErrDevice too.
var (
	ErrInput       = errors.New("options or a model that cannot be measured")
	ErrDevice      = errors.New("a device that cannot run the steps")
	ErrInterrupted = errors.New("interrupted")
)

// about is an error of one of the kinds, with its own text.
type about struct {
	error
	kind error
}

func (a about) Is(target error) bool { return target == a.kind }
func (a about) Unwrap() error        { return a.error }

func input(err error) error  { return as(ErrInput, err) }
func device(err error) error { return as(ErrDevice, err) }

func interrupted(cause error) error { return as(ErrInterrupted, fmt.Errorf("interrupted: %w", cause)) }

func as(kind, err error) error {
	if err == nil {
		return nil
	}
	return about{err, kind}
}

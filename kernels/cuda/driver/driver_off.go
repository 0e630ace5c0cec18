//go:build !cuda

package driver

import "errors"

// Status says why there is no driver to use.
func Status() error { return errors.New("this binary was built without CUDA (build tag cuda)") }

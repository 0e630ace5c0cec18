package kernels

import "errors"

// Sentinels that callers branch on.
var (
	// ErrMemory: a device has not enough memory for an allocation.
	ErrMemory = errors.New("out of device memory")
	// ErrKernel: a call names a kernel that the device lacks, or its arguments do not fit the kernel's row.
	ErrKernel = errors.New("bad kernel call")
	// ErrDevice: a device failed while it ran; the step is lost, the job can be resumed.
	ErrDevice = errors.New("device failed")
	// ErrPeer: a rank ended because another one failed, whose error it wraps.
	ErrPeer = errors.New("another rank failed")
)

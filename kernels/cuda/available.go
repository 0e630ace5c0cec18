package cuda

import "glmbatch/kernels/cuda/driver"

// Available is nil where this binary can use a GPU of this machine, else it says
// why not.
func Available() error { return driver.Status() }

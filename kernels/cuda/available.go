package cuda

import "glmbatch/kernels/cuda/driver"

// Available is nil where this binary can use a GPU of this machine, else it says
// why not.
func Available() error { return driver.Status() }

// GPU is one that this binary can use.
type GPU struct {
	PCI     string // where it is: domain:bus:device.function
	Reaches []bool // whether it reaches each GPU's memory
}

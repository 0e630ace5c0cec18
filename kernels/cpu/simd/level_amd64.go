package simd

// levels are those that this machine can run, best first.
func levels() []*level { return []*level{goLevel()} }

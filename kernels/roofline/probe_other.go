//go:build !amd64

package roofline

// probes returns what this CPU runs fastest.
func probes() probe { return plainProbe }

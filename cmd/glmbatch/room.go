package main

import (
	"cmp"

	"glmbatch/cmd/glmbatch/gpus"
	"glmbatch/engine/fit"
	"glmbatch/kernels/cuda"
	"glmbatch/telemetry"
)

// roomHere looks at this machine.
func roomHere(d *deviceFlags) fit.Room {
	r := fit.Room{Device: d.resolved(), PerGPU: d.ranksPerGPU}
	if r.Device != "cuda" {
		r.Memory = cmp.Or(d.memory, telemetry.AvailableMemory())
		return r
	}
	report := gpus.Read()
	if seen, err := cuda.Visible(); err == nil {
		var places []string
		for _, g := range seen {
			places = append(places, g.PCI)
		}
		report.See(places)
	}
	for _, g := range report.GPUs {
		r.GPUs = append(r.GPUs, g.Free)
	}
	return r
}

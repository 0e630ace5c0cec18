package main

import (
	"glmbatch/cmd/glmbatch/gpus"
	"glmbatch/kernels/cuda"
	"glmbatch/telemetry"
)

// sampler begins to sample the CPUs, and the GPUs of a job of so many ranks; end ends
// that. why says why there are none of GPUs.
func (d *deviceFlags) sampler(ranks int) (s *telemetry.Sampler, end func(), why string) {
	read, shut, why := func() *telemetry.GPU { return nil }, func() {}, "the job runs on the CPU"
	if d.resolved() == "cuda" {
		seen, err := cuda.Visible()
		if err != nil {
			why = err.Error()
		} else {
			var places []string
			used := (ranks + max(1, d.ranksPerGPU) - 1) / max(1, d.ranksPerGPU)
			for _, g := range seen[:min(len(seen), used)] { // ranks are placed on the first
				places = append(places, g.PCI)
			}
			if r, e, w := gpus.Watch(places); r != nil {
				read, shut, why = r, e, ""
			} else {
				why = w
			}
		}
	}
	s = telemetry.Start(read)
	return s, func() {
		s.Close()
		shut()
	}, why
}

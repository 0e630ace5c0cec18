package main

import (
	"os"

	"glmbatch/engine/fit"
	"glmbatch/engine/glm5"
	"glmbatch/engine/synth"
	"glmbatch/kernels"
)

// fitOf compares what the model needs with what the device has.
func fitOf(f *doctorFlags, d *diagnosis) (*fit.Fit, error) {
	c, need, wrong, err := f.memory()
	if err != nil {
		return nil, err
	}
	at := fit.Room{Device: d.Device, Memory: d.CPU.Available, PerGPU: f.device.ranksPerGPU}
	if at.Memory == 0 {
		at.Memory = d.CPU.Memory
	}
	for i := range d.GPU.GPUs {
		at.GPUs = append(at.GPUs, d.GPU.GPUs[i].Free)
	}
	if len(at.GPUs) == 0 && d.Opened != nil {
		at.GPUs = []int64{d.Opened.Memory}
	}
	o := f.options()
	limits(&o, d.Device, 0, 0)
	return fit.New(f.model+f.config, &c, need, wrong, o, at), nil
}

func (f *doctorFlags) options() glm5.Options {
	return glm5.Options{Layout: glm5.Layout(f.layout), KVCache: kernels.Format(f.kvCache), Shards: f.tp,
		Dense: kernels.Format(f.dense)}
}

// memory returns the config, what it takes, and what keeps the weights from running.
func (f *doctorFlags) memory() (c glm5.Config, m fit.Rank, wrong, err error) {
	if f.config != "" {
		_, c, err = (&synth.Options{Config: f.config, MTP: true}).Resolve()
		if err != nil {
			return c, m, nil, withCode(exitInput, err)
		}
		return c, fit.Planned(&c, f.tp, f.options()), nil, nil
	}
	ck, c, err := openModel(f.model)
	if err != nil {
		return c, m, nil, err
	}
	defer ck.Close()
	v := c.Cover(ck)
	return c, fit.Of(&v, f.tp, f.options()), v.Check(glm5.Options{}), nil
}

// workingFolder is where outputs go that have no other place.
func workingFolder() string {
	dir, err := os.Getwd()
	if err != nil {
		return "."
	}
	return dir
}

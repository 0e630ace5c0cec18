package main

import (
	"os"

	"glmbatch/engine/glm5"
	"glmbatch/kernels"
)

// fit compares what the model needs with what the device has.
func fit(f *doctorFlags, d *diagnosis) (*modelFit, error) {
	c, need, wrong, err := f.memory()
	if err != nil {
		return nil, err
	}
	at := machineRoom{device: d.Device, memory: d.CPU.Available, per: f.device.ranksPerGPU}
	if at.memory == 0 {
		at.memory = d.CPU.Memory
	}
	for i := range d.GPU.GPUs {
		at.gpus = append(at.gpus, d.GPU.GPUs[i].Free)
	}
	if len(at.gpus) == 0 && d.Opened != nil {
		at.gpus = []int64{d.Opened.Memory}
	}
	o := glm5.Options{KVCache: kernels.Format(f.kvCache), MaxRows: usualRows(d.Device), MaxSeqs: defaultSeqs, Shards: f.tp}
	return fitOf(f.model+f.config, &c, need, wrong, o, at), nil
}

// memory returns the config, what it takes, and what keeps the weights from running.
func (f *doctorFlags) memory() (c glm5.Config, m rankMemory, wrong, err error) {
	if f.config != "" {
		_, c, err = synthConfig(&synthOptions{Config: f.config, Scale: 1, MTP: true})
		if err != nil {
			return c, m, nil, withCode(exitInput, err)
		}
		return c, memoryPlanned(&c, f.tp), nil, nil
	}
	ck, c, err := openModel(f.model)
	if err != nil {
		return c, m, nil, err
	}
	defer ck.Close()
	v := c.Cover(ck)
	return c, memoryOf(&v, f.tp, glm5.Options{KVCache: kernels.Format(f.kvCache)}), v.Check(glm5.Options{}), nil
}

// workingFolder is where outputs go that have no other place.
func workingFolder() string {
	dir, err := os.Getwd()
	if err != nil {
		return "."
	}
	return dir
}

package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"glmbatch/engine/glm5"
	"glmbatch/kernels"
)

// modelFit says what a model takes and what is left for its caches.
type modelFit struct {
	Name       string `json:"name"`
	TP         int    `json:"tp"`
	Parameters int64  `json:"parameters"`
	Weights    int64  `json:"weight_bytes"` // on each rank
	Working    int64  `json:"step_bytes"`   // roughly, on each rank, in steps of the usual size
	KVCache    string `json:"kv_cache"`
	Token      int64  `json:"cache_bytes_per_token"` // on each rank
	Context    int    `json:"max_position_embeddings"`
	Where      string `json:"where"` // one GPU, or the machine
	Ranks      int    `json:"ranks"` // that share it
	Memory     int64  `json:"memory_bytes"`
	Tokens     int64  `json:"cache_tokens"` // that fit beside the weights
	Fits       bool   `json:"fits"`
	Fault      string `json:"fault"` // why it does not

	way string // out of the fault; "": the usual ones
}

// fit compares what the model needs with what the device has.
func fit(f *doctorFlags, d *diagnosis) (*modelFit, error) {
	c, need, wrong, err := f.memory()
	if err != nil {
		return nil, err
	}
	m := &modelFit{Name: f.model + f.config, TP: f.tp, Parameters: need.params, Weights: need.weights, Working: workingMemory(&c, usualRows(d.Device), f.tp),
		KVCache: f.kvCache, Token: cacheToken(&c, kernels.Format(f.kvCache)), Context: c.MaxPositions}
	if err := c.CheckTP(f.tp); err != nil {
		m.Fault, m.way = strings.ReplaceAll(err.Error(), "\n", "; "), "give another --tp"
		return m, nil
	}
	var weights, token int64
	if d.Device == "cuda" {
		m.onGPUs(d, f.device.ranksPerGPU)
		weights, token = int64(m.Ranks)*m.Weights, int64(m.Ranks)*m.Token
	} else {
		// The ranks share one memory, with one copy of what is the same.
		m.Where, m.Ranks, m.Memory = "this machine", f.tp, d.CPU.Available
		if m.Memory == 0 {
			m.Memory = d.CPU.Memory
		}
		weights, token = need.together(f.tp), m.Token
	}
	room := int64(memoryShare*float64(m.Memory)) - weights - int64(m.Ranks)*m.Working
	m.Tokens = max(0, room/max(token, 1)/kernels.PageTokens*kernels.PageTokens)
	switch {
	case m.Fault != "":
	case wrong != nil:
		m.Fault, m.way = wrong.Error(), "glmbatch model inspect "+m.Name+" says more"
	case m.Memory == 0:
		m.Fault = "its memory is not known"
	case m.Tokens == 0:
		m.Fault = fmt.Sprintf("%s has %s, the weights of %d ranks take %s and steps about %s", m.Where, bytesText(m.Memory), m.Ranks, bytesText(weights), bytesText(int64(m.Ranks)*m.Working))
	}
	m.Fits = m.Fault == ""
	return m, nil
}

// onGPUs places the ranks on the GPUs as the device does: in turn, several on
// one where there are fewer GPUs than ranks. The fullest GPU counts.
func (m *modelFit) onGPUs(d *diagnosis, per int) {
	n := len(d.GPU.GPUs)
	if n == 0 && d.Opened != nil {
		n, m.Memory = 1, d.Opened.Memory
	}
	n = max(n, 1)
	if per == 0 {
		per = (m.TP + n - 1) / n
	}
	m.Where, m.Ranks = "a GPU", min(per, m.TP)
	if per*n < m.TP {
		m.Fault, m.way = fmt.Sprintf("%d ranks do not find a place on %d GPUs with --ranks-per-gpu %d", m.TP, n, per), "raise --ranks-per-gpu, or leave it out"
	}
	for i := range d.GPU.GPUs {
		if i*per < m.TP && (i == 0 || d.GPU.GPUs[i].Free < m.Memory) {
			m.Memory = d.GPU.GPUs[i].Free
		}
	}
}

// remedy says what could be done.
func (m *modelFit) remedy(device string) string {
	if m.way != "" {
		return m.way
	}
	var ways []string
	if m.TP < 8 && device == "cuda" {
		ways = append(ways, "a larger --tp, on as many GPUs")
	}
	if m.KVCache != "fp8" {
		ways = append(ways, "--kv-cache fp8")
	}
	return "try " + strings.Join(append(ways, "more memory", "a smaller model"), ", ")
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

// availableMemory is what the system could give to a program now; 0: unknown.
func availableMemory() int64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	return memAvailable(string(text))
}

func memAvailable(meminfo string) int64 {
	for line := range strings.Lines(meminfo) {
		if k, v, ok := strings.Cut(line, ":"); ok && k == "MemAvailable" {
			n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(v), " kB"), 10, 64)
			if err != nil {
				return 0
			}
			return n << 10
		}
	}
	return 0
}

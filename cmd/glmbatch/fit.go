package main

import (
	"fmt"
	"strings"

	"glmbatch/cmd/glmbatch/gpus"
	"glmbatch/engine/glm5"
	"glmbatch/kernels"
	"glmbatch/kernels/cuda"
)

// modelFit says what a model takes and what is left for its caches.
type modelFit struct {
	Name       string `json:"name"`
	TP         int    `json:"tp"`
	Parameters int64  `json:"parameters"`
	Weights    int64  `json:"weight_bytes"` // on each rank
	Working    int64  `json:"step_bytes"`   // on each rank
	KVCache    string `json:"kv_cache"`
	Token      int64  `json:"cache_bytes_per_token"` // on each rank
	Context    int    `json:"max_position_embeddings"`
	Where      string `json:"where"` // one GPU, or the machine
	Ranks      int    `json:"ranks"` // that share it
	Memory     int64  `json:"memory_bytes"`
	Reserve    int64  `json:"reserve_bytes"` // of it, what is left alone
	Tokens     int64  `json:"cache_tokens"`  // that fit beside the weights
	Fits       bool   `json:"fits"`
	Fault      string `json:"fault"` // why it does not

	way    string // out of the fault; "": the usual ones
	device string
	taken  int64 // of Memory, by weights and steps
	token  int64 // of Memory, by a token on all ranks that share it
}

// machineRoom is the memory that ranks find.
type machineRoom struct {
	device string
	memory int64   // of the machine, that is free; 0: unknown
	gpus   []int64 // free on each
	per    int     // ranks a GPU; 0: as few as place all
	ranks  int     // of the model's that run here; 0: all
}

// roomHere looks at this machine.
func roomHere(d *deviceFlags) machineRoom {
	r := machineRoom{device: d.resolved(), per: d.ranksPerGPU}
	if r.device != "cuda" {
		r.memory = availableMemory()
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
		r.gpus = append(r.gpus, g.Free)
	}
	return r
}

// reserve is what of free memory is not planned with: drivers, the heap of the program
// and rounding have it.
func reserve(device string, memory int64) int64 {
	n := memory / 25
	if device != "cuda" {
		n += min(1<<30, memory/4)
	}
	return n
}

// scratch is about what kernels of a device work in besides: on GPUs each expert's output
// of a row waits to be summed, and a rank has a context of its own.
func scratch(device string, c *glm5.Config, rows int) int64 {
	if device != "cuda" {
		return 64 << 20
	}
	return 4*int64(rows)*int64(c.ExpertsPerToken)*int64(c.Hidden) + 768<<20
}

// fitOf compares what a model loaded with o takes, on as many ranks as o.Shards, with
// what there is. wrong keeps its weights from running; nil: nothing does.
func fitOf(name string, c *glm5.Config, need rankMemory, wrong error, o glm5.Options, at machineRoom) *modelFit {
	m := &modelFit{Name: name, TP: o.Shards, Parameters: need.params, Weights: need.weights, KVCache: string(o.KVCache), Context: c.MaxPositions, device: at.device}
	if err := c.CheckTP(o.Shards); err != nil {
		m.Fault, m.way = strings.ReplaceAll(err.Error(), "\n", "; "), "give another --tp"
		return m
	}
	n, err := c.Need(o)
	if err != nil {
		m.Fault = err.Error()
		return m
	}
	own := n.Own + scratch(at.device, c, o.MaxRows)
	m.Working, m.Token = n.Whole+own, n.Token()
	here := o.Shards
	if at.ranks > 0 {
		here = at.ranks
	}
	if at.device == "cuda" {
		m.onGPUs(at, here)
		m.taken, m.token = int64(m.Ranks)*(m.Weights+m.Working), int64(m.Ranks)*m.Token
	} else {
		// The ranks share one memory, with one copy of what is the same.
		m.Where, m.Ranks, m.Memory = "this machine", here, at.memory
		m.taken, m.token = need.together(here)+n.Whole+int64(here)*own, m.Token
	}
	m.Reserve = reserve(at.device, m.Memory)
	m.Tokens = max(0, (m.Memory-m.Reserve-m.taken)/max(m.token, 1)/kernels.PageTokens*kernels.PageTokens)
	switch {
	case m.Fault != "":
	case wrong != nil:
		m.Fault, m.way = wrong.Error(), "glmbatch model inspect "+m.Name+" says more"
	case m.Memory == 0:
		m.Fault = "its memory is not known"
	case m.Tokens == 0:
		m.Fault = m.lacks()
	}
	m.Fits = m.Fault == ""
	return m
}

// lacks says what there is and what takes it.
func (m *modelFit) lacks() string {
	ranks := int64(m.Ranks)
	weights := m.taken - ranks*m.Working
	if m.device != "cuda" {
		return fmt.Sprintf("%s has %s free, of which %s are left alone; weights and steps of %d ranks take %s", m.Where, bytesText(m.Memory), bytesText(m.Reserve), ranks, bytesText(m.taken))
	}
	return fmt.Sprintf("%s has %s free, of which %s are left alone; the weights of %d ranks take %s and their steps %s", m.Where, bytesText(m.Memory), bytesText(m.Reserve), ranks,
		bytesText(weights), bytesText(ranks*m.Working))
}

// onGPUs places the ranks on the GPUs as the device does: in turn, several on
// one where there are fewer GPUs than ranks. The fullest GPU counts.
func (m *modelFit) onGPUs(at machineRoom, ranks int) {
	n, per := max(len(at.gpus), 1), at.per
	if per == 0 {
		per = (ranks + n - 1) / n
	}
	m.Where, m.Ranks = "a GPU", min(per, ranks)
	if per*n < ranks {
		m.Fault, m.way = fmt.Sprintf("%d ranks do not find a place on %d GPUs with --ranks-per-gpu %d", ranks, n, per), "raise --ranks-per-gpu, or leave it out"
	}
	for i, free := range at.gpus {
		if i*per < ranks && (i == 0 || free < m.Memory) {
			m.Memory = free
		}
	}
}

// remedy says what could be done.
func (m *modelFit) remedy() string {
	if m.way != "" {
		return m.way
	}
	var ways []string
	if m.TP < 8 && m.device == "cuda" {
		ways = append(ways, "a larger --tp, on as many GPUs")
	}
	if m.KVCache != "fp8" {
		ways = append(ways, "--kv-cache fp8")
	}
	return "try " + strings.Join(append(ways, "more memory", "a smaller model"), ", ")
}

// usual is how many tokens the caches have if nothing is said: what fits, but no more
// than seqs sequences of the model's longest can use, and on the CPU half of what is left.
func (m *modelFit) usual(seqs int) int64 {
	n := m.Tokens
	if m.device != "cuda" {
		n /= 2
	}
	n = min(n, int64(seqs)*int64(m.Context))
	return max(kernels.PageTokens, n/kernels.PageTokens*kernels.PageTokens)
}

// context is how many positions of a sequence caches of so many tokens are for: the
// model's, or a round number, which is the same tomorrow and on another machine of its
// kind, with a little more or less memory.
func (m *modelFit) context(tokens int64) int {
	if tokens >= int64(m.Context) {
		return m.Context
	}
	step := int64(kernels.PageTokens)
	for 16*step <= tokens {
		step *= 2
	}
	return int(tokens / step * step)
}

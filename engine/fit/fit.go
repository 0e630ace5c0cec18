package fit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"glmbatch/engine/glm5"
	"glmbatch/kernels"
	"glmbatch/units"
)

// Fit says what a model takes and what is left for its caches.
type Fit struct {
	Name       string `json:"name"`
	TP         int    `json:"tp"`
	Parameters int64  `json:"parameters"`
	Weights    int64  `json:"weight_bytes"` // on each rank
	Working    int64  `json:"step_bytes"`   // on each rank
	KVCache    string `json:"kv_cache"`
	Token      int64  `json:"cache_bytes_per_token"` // on each rank that has it
	Caches     int    `json:"caches"`                // of different tokens: 1, or as many as there are ranks
	Context    int    `json:"max_position_embeddings"`
	Where      string `json:"where"` // one GPU, or the machine
	Ranks      int    `json:"ranks"` // that share it
	Memory     int64  `json:"memory_bytes"`
	Reserve    int64  `json:"reserve_bytes"` // of it, what is left alone
	Tokens     int64  `json:"cache_tokens"`  // of a cache, that fit beside the weights
	Fits       bool   `json:"fits"`
	Fault      string `json:"fault"` // why it does not

	way    string // out of the fault; "": the usual ones
	device string

	Unknown  bool  `json:"-"` // the fault is that the memory is not known, and no other
	Taken    int64 `json:"-"` // of Memory, by weights and steps
	PerToken int64 `json:"-"` // of Memory, by a token on all ranks that share it
}

// Room is the memory that ranks find.
type Room struct {
	Device string
	Memory int64   // of the machine, that is free; 0: unknown
	GPUs   []int64 // free on each
	PerGPU int     // ranks a GPU; 0: as few as place all
	Ranks  int     // of the model's that run here; 0: all
}

// Found is the memory of ranks that have been opened, each on a GPU of its own unless they
// share a memory; free is what a CPU's machine could give now, 0: unknown.
func Found(info kernels.Info, ranks int, free int64) Room {
	at := Room{Device: info.Kind, Memory: cmp.Or(free, info.Memory), Ranks: ranks}
	if info.Kind == "cuda" {
		at.GPUs = []int64{info.Memory}
		if !info.Shared {
			at.GPUs = slices.Repeat(at.GPUs, ranks)
		}
	}
	return at
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

// New compares what a model loaded with o takes, on as many ranks as o.Shards, with
// what there is. wrong keeps its weights from running; nil: nothing does.
func New(name string, c *glm5.Config, need Rank, wrong error, o glm5.Options, at Room) *Fit {
	m := &Fit{Name: name, TP: o.Shards, Parameters: need.Params, Weights: need.Weights, KVCache: string(o.KVCache),
		Context: c.MaxPositions, device: at.Device}
	if err := c.CheckTP(o.Shards); err != nil {
		m.Fault, m.way = strings.ReplaceAll(err.Error(), "\n", "; "), "give another --tp"
		return m
	}
	n, err := c.Need(o)
	if err != nil {
		m.Fault = err.Error()
		return m
	}
	own := n.Own + scratch(at.Device, c, o.MaxRows*o.Homes())
	m.Working, m.Token, m.Caches = n.Whole+own, n.Token(), o.Homes()
	here := o.Shards
	if at.Ranks > 0 {
		here = at.Ranks
	}
	if at.Device == "cuda" {
		m.onGPUs(at, here)
		m.Taken, m.PerToken = int64(m.Ranks)*(m.Weights+m.Working), int64(m.Ranks)*m.Token
	} else {
		// The ranks share one memory, with one copy of what is the same.
		m.Where, m.Ranks, m.Memory = "this machine", here, at.Memory
		m.Taken, m.PerToken = need.Together(here)+n.Whole+int64(here)*own, m.Token
		if o.Apart() {
			m.PerToken *= int64(here)
		}
	}
	m.Reserve = reserve(at.Device, m.Memory)
	m.Tokens = max(0, m.Left()/max(m.PerToken, 1)/kernels.PageTokens*kernels.PageTokens)
	switch {
	case m.Fault != "":
	case wrong != nil:
		m.Fault, m.way = wrong.Error(), "glmbatch model inspect "+m.Name+" says more"
	case m.Memory == 0:
		m.Fault, m.Unknown = "its memory is not known", true
	case m.Tokens == 0:
		m.Fault = m.lacks()
	}
	m.Fits = m.Fault == ""
	return m
}

// Left is what weights and steps leave of the memory for caches; below 0: they do not fit.
func (m *Fit) Left() int64 { return m.Memory - m.Reserve - m.Taken }

// lacks says what there is and what takes it.
func (m *Fit) lacks() string {
	ranks := int64(m.Ranks)
	weights := m.Taken - ranks*m.Working
	if m.device != "cuda" {
		return fmt.Sprintf("%s has %s free, of which %s are left alone; weights and steps of %d ranks take %s", m.Where,
			units.Bytes(m.Memory), units.Bytes(m.Reserve), ranks, units.Bytes(m.Taken))
	}
	return fmt.Sprintf("%s has %s free, of which %s are left alone; the weights of %d ranks take %s and their steps %s",
		m.Where, units.Bytes(m.Memory), units.Bytes(m.Reserve), ranks,
		units.Bytes(weights), units.Bytes(ranks*m.Working))
}

// onGPUs places the ranks on the GPUs as the device does: in turn, several on
// one where there are fewer GPUs than ranks. The fullest GPU counts.
func (m *Fit) onGPUs(at Room, ranks int) {
	n, per := max(len(at.GPUs), 1), at.PerGPU
	if per == 0 {
		per = (ranks + n - 1) / n
	}
	m.Where, m.Ranks = "a GPU", min(per, ranks)
	if per*n < ranks {
		m.Fault, m.way = fmt.Sprintf("%d ranks do not find a place on %d GPUs with --ranks-per-gpu %d", ranks, n,
			per), "raise --ranks-per-gpu, or leave it out"
	}
	for i, free := range at.GPUs {
		if i*per < ranks && (i == 0 || free < m.Memory) {
			m.Memory = free
		}
	}
}

// Remedy says what could be done.
func (m *Fit) Remedy() string {
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

// Sequences is how many of so many tokens a cache holds, in whole pages.
func (m *Fit) Sequences(tokens int64) int64 {
	each := (tokens + kernels.PageTokens - 1) / kernels.PageTokens
	return m.Tokens / kernels.PageTokens / each
}

// Usual is how many tokens the caches have if nothing is said: what fits, but no more
// than seqs sequences of the model's longest can use, and on the CPU half of what is left.
func (m *Fit) Usual(seqs int) int64 {
	n := m.Tokens
	if m.device != "cuda" {
		n /= 2
	}
	n = min(n, int64(seqs)*int64(m.Context))
	return max(kernels.PageTokens, n/kernels.PageTokens*kernels.PageTokens)
}

// Positions is how many positions of a sequence caches of so many tokens are for: the
// model's, or a round number, which is the same tomorrow and on another machine of its
// kind, with a little more or less memory.
func (m *Fit) Positions(tokens int64) int {
	if tokens >= int64(m.Context) {
		return m.Context
	}
	step := int64(kernels.PageTokens)
	for 16*step <= tokens {
		step *= 2
	}
	return int(tokens / step * step)
}

package gpus

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Report is what is known of the machine's GPUs.
type Report struct {
	Driver string `json:"driver"` // its version; "": no driver
	NVML   string `json:"nvml"`   // its version; "": not asked
	CUDA   string `json:"cuda"`   // the newest that the driver runs; "": unknown
	GPUs   []GPU  `json:"gpus"`
	Hidden int    `json:"hidden_gpus"` // that the machine has and the program does not see
	Fault  string `json:"fault"`       // why NVML was not asked, or what it did not tell
}

// GPU is one device. What is 0 or "" is unknown.
type GPU struct {
	Name       string    `json:"name"`
	PCI        string    `json:"pci"`                // domain:bus:device.function
	Capability string    `json:"compute_capability"` // "9.0"
	Memory     int64     `json:"memory_bytes"`
	Free       int64     `json:"free_bytes"`
	Celsius    int       `json:"celsius"`
	Power      int       `json:"power_mw"`
	PowerLimit int       `json:"power_limit_mw"`
	Clock      int       `json:"clock_mhz"` // of the multiprocessors
	MaxClock   int       `json:"max_clock_mhz"`
	MIG        bool      `json:"mig"`       // cut into instances
	Processes  []Process `json:"processes"` // that compute on it
	Links      []Link    `json:"links"`     // to each GPU, in their order
	NVLinks    NVLinks   `json:"nvlinks"`
}

// Process is a process that uses a GPU.
type Process struct {
	PID    int   `json:"pid"`
	Memory int64 `json:"memory_bytes"` // 0: unknown
}

// NVLinks are a GPU's links to others or to switches.
type NVLinks struct {
	Version string `json:"version"`
	Up      int    `json:"up"`
	Down    int    `json:"down"`
	Rate    int64  `json:"rate_bytes"` // of one link in one direction, a second
}

// Link is how a GPU reaches another's memory.
type Link string

// The kinds of links.
const (
	Self    Link = "self"
	NVLink  Link = "nvlink"
	PCIe    Link = "pcie"
	NoPeer  Link = "none"
	Unknown Link = ""
)

// Read returns what can be known.
func Read() Report {
	r := read()
	r.GPUs = append([]GPU{}, r.GPUs...) // [] in JSON, not null
	if r.NVML == "" {
		fromProc(&r, "/proc/driver/nvidia")
	}
	return r
}

// See keeps the GPUs that the program sees: those at the places pci, in that
// order. A place that is not known keeps all.
func (r *Report) See(pci []string) {
	var at []int
	for _, p := range pci {
		i := slices.IndexFunc(r.GPUs, func(g GPU) bool { return g.PCI == p })
		if i < 0 {
			return
		}
		at = append(at, i)
	}
	seen := make([]GPU, len(at))
	for i, from := range at {
		seen[i] = r.GPUs[from]
		seen[i].Links = nil
		for _, to := range at {
			if links := r.GPUs[from].Links; to < len(links) {
				seen[i].Links = append(seen[i].Links, links[to])
			}
		}
	}
	r.GPUs, r.Hidden = seen, len(r.GPUs)-len(seen)
}

// fromProc fills in what the driver writes to files below dir.
func fromProc(r *Report, dir string) {
	text, err := os.ReadFile(filepath.Join(dir, "version"))
	if err != nil {
		return
	}
	line, _, _ := strings.Cut(string(text), "\n")
	// NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun Jul 27 …
	fields := strings.Fields(line)
	i := slices.IndexFunc(fields, func(f string) bool {
		return f != "" && f[0] >= '0' && f[0] <= '9' &&
			strings.Contains(f, ".")
	})
	if i >= 0 {
		r.Driver = fields[i]
	}
	files, err := filepath.Glob(filepath.Join(dir, "gpus", "*", "information"))
	if err != nil {
		return
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "Model" {
				r.GPUs = append(r.GPUs, GPU{Name: strings.TrimSpace(v)})
			}
		}
	}
}

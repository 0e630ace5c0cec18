package plan

import "slices"

// Architecture is a family of GPUs with instructions of their own, and the kernels that
// were compiled for them besides the portable ones.
type Architecture struct {
	Name         string // as compilers write it: sm90
	Major, Minor int    // compute capability
	Units4       Units4 // its matrix units for 4-bit operands
	Panels       bool   // its products read rows as panels, see panels.go
	Variants     []Variant
	Fusions      []Fusion
}

// architectures that have kernels of their own; others have the portable ones.
var architectures = []*Architecture{&sm90, &sm100, &sm120}

// ArchitectureOf returns the family of a GPU.
func ArchitectureOf(major, minor int) *Architecture {
	for _, a := range architectures {
		if a.Major == major && a.Minor == minor {
			return a
		}
	}
	return &Architecture{Name: "portable", Major: major, Minor: minor}
}

// With returns the family as if it had such matrix units: tests run their kernels with
// plain code for the instructions.
func (a *Architecture) With(u Units4) *Architecture {
	if u <= a.Units4 {
		return a
	}
	w := *a
	w.Units4, w.Variants = u, slices.Concat(map[Units4][]Variant{MMA4: mma4, Tensor4: tensor4}[u], a.Variants)
	return &w
}

// Target is what the choice of launches follows from, besides the calls: a GPU, and the
// group of ranks that it works in.
type Target struct {
	*Architecture
	SMs    int32 // multiprocessors
	Shared int32 // bytes of shared memory that a block may have

	Rank, Ranks int
	PerGPU      int        // the most ranks that a GPU of the group has
	Collective  Collective // how ranks exchange messages; "": for each size the fastest way
	NCCL        bool       // it is loaded, and the ranks have joined
}

// GPU returns a known GPU, alone, to plan for where there is none; nil: it is not known.
func GPU(name string) *Target {
	for _, g := range gpus {
		if g.name == name {
			t := g.Target
			t.Ranks, t.PerGPU = 1, 1
			return &t
		}
	}
	return nil
}

// GPUs are the names of those.
func GPUs() (names []string) {
	for _, g := range gpus {
		names = append(names, g.name)
	}
	return names
}

var gpus = []struct {
	name string
	Target
}{
	{"h200", Target{Architecture: &sm90, SMs: 132, Shared: 232448}},
	{"b200", Target{Architecture: &sm100, SMs: 148, Shared: 232448}},
	{"rtx-pro-6000", Target{Architecture: &sm120, SMs: 188, Shared: 101376}},
}

// crowded reports whether ranks share the GPU: their kernels must not wait for each other
// in more than few blocks, nor ask for multiprocessors that are near each other.
func (t *Target) crowded() bool { return t.PerGPU > 1 }

// Collective is a way in which ranks exchange messages. The sums of all ways have
// the same bits.
type Collective string

// The ways.
const (
	OneShot Collective = "one-shot" // every rank sends all it has to every other
	TwoShot Collective = "two-shot" // each part of a row is summed by one rank, which sends the sum to the others
	ViaNCCL Collective = "nccl"     // two-shot through NCCL, for ranks on GPUs of their own
	// one-shot or two-shot through the host's memory, for GPUs that do not reach each other's
	ViaHost Collective = "host"
)

// Units4 are matrix units that take 4-bit operands and their block scales.
type Units4 uint8

const (
	No4     Units4 = iota
	MMA4           // mma.sync: src/gemm/sm120_w4a4.cu
	Tensor4        // tcgen05.mma: src/gemm/sm100_w4a4.cu
)

package roofline

import (
	"slices"
	"strings"

	"glmbatch/kernels"
)

// Machine is what one rank's device can do. A rate of 0 is unknown and bounds
// nothing. Rates are per second.
type Machine struct {
	Name string `json:"name"`
	Read int64  `json:"read_bytes"` // memory read
	Copy int64  `json:"copy_bytes"` // memory copied, bytes read plus bytes written
	Link int64  `json:"link_bytes"` // received from other ranks
	// FLOPs is the peak of each pipe; a multiply-add counts as two.
	FLOPs map[kernels.Pipe]int64 `json:"flops"`
}

const giga, tera = 1e9, 1e12

// machines are known by name, each with where its figures come from. Memory rates of the
// H200 were measured on one; the others are their makers' figures. FLOPs are dense; the
// rate of a link is that of one direction. OnInt8 is also the rate of FP8 where a machine
// has that. Of the MI250 family a device is one of the card's two dies, as HIP has it.
var machines = []Machine{
	// NVIDIA A100 data sheet: 40 GB SXM and 80 GB SXM, NVLink 600 GB/s both ways.
	{Name: "a100-40gb", Read: 1555 * giga, Copy: 1555 * giga, Link: 300 * giga, FLOPs: flops(19.5, 312, 624, 0)},
	{Name: "a100", Read: 2039 * giga, Copy: 2039 * giga, Link: 300 * giga, FLOPs: flops(19.5, 312, 624, 0)},
	// NVIDIA H100 data sheet, H100 PCIe and H100 NVL product briefs; half of what is said with sparsity.
	{Name: "h100-pcie", Read: 2000 * giga, Copy: 2000 * giga, Link: 300 * giga, FLOPs: flops(51, 756, 1513, 0)},
	{Name: "h100-nvl", Read: 3938 * giga, Copy: 3938 * giga, Link: 300 * giga, FLOPs: flops(60, 835, 1671, 0)},
	{Name: "h100", Read: 3350 * giga, Copy: 3350 * giga, Link: 450 * giga, FLOPs: flops(67, 989, 1979, 0)},
	// Measured: of the 4,800 GB/s of NVIDIA's data sheet; FLOPs and NVLink are the H100's.
	{Name: "h200", Read: 4487 * giga, Copy: 4290 * giga, Link: 450 * giga, FLOPs: flops(67, 989, 1979, 0)},
	// NVIDIA Blackwell architecture brief: a GPU of HGX B200 at 1,000 W, of GB200 at 1,200 W.
	{Name: "b200", Read: 8000 * giga, Copy: 8000 * giga, Link: 900 * giga, FLOPs: flops(80, 2250, 4500, 9000)},
	{Name: "gb200", Read: 8000 * giga, Copy: 8000 * giga, Link: 900 * giga, FLOPs: flops(90, 2500, 5000, 10000)},
	// NVIDIA RTX PRO 6000 Blackwell data sheet: 512 bits at 28 Gb/s; 4,000 AI TOPS are FP4 with
	// sparsity; PCIe 5.0 x16 is its only link.
	{Name: "rtx-pro-6000", Read: 1792 * giga, Copy: 1792 * giga, Link: 64 * giga, FLOPs: flops(125, 500, 1000, 2000)},
	// AMD Instinct MI250 and MI250X data sheets, halved: six and eight links of 50 GB/s a card.
	{Name: "mi250", Read: 1638 * giga, Copy: 1638 * giga, Link: 150 * giga, FLOPs: flops(22.6, 181, 181, 0)},
	{Name: "mi250x", Read: 1638 * giga, Copy: 1638 * giga, Link: 200 * giga, FLOPs: flops(23.9, 191.5, 191.5, 0)},
	// AMD Instinct MI300X and MI325X data sheets: seven links of 64 GB/s.
	{Name: "mi300x", Read: 5300 * giga, Copy: 5300 * giga, Link: 448 * giga, FLOPs: flops(163.4, 1307.4, 2614.9, 0)},
	{Name: "mi325x", Read: 6000 * giga, Copy: 6000 * giga, Link: 448 * giga, FLOPs: flops(163.4, 1307.4, 2614.9, 0)},
	// AMD CDNA 4 white paper: 256 units of 4,096 FP16, 8,192 FP8 and 16,384 FP4 operations a
	// clock, at the 2.2 and 2.4 GHz of the MI350X and MI355X data sheets; seven links of 76.8 GB/s.
	{Name: "mi350x", Read: 8000 * giga, Copy: 8000 * giga, Link: 538 * giga,
		FLOPs: flops(144.2, 2306.9, 4613.7, 9227.5)},
	{Name: "mi355x", Read: 8000 * giga, Copy: 8000 * giga, Link: 538 * giga,
		FLOPs: flops(157.3, 2516.6, 5033.2, 10066.3)},
}

// flops has the peaks of the pipes in 10^12 a second; 0: it has no such pipe.
func flops(vector, matrix, int8, fp4 float64) map[kernels.Pipe]int64 {
	m := map[kernels.Pipe]int64{kernels.OnVector: int64(vector * tera), kernels.OnMatrix: int64(matrix * tera),
		kernels.OnInt8: int64(int8 * tera)}
	if fp4 > 0 {
		m[kernels.OnFP4] = int64(fp4 * tera)
	}
	return m
}

// devices tell machines by the words of a device's name, as drivers give it: all words
// of the first row that fits. A GH200's name has H200 in it, which is no word.
var devices = []struct{ words, machine string }{
	{"A100 40GB", "a100-40gb"}, {"A100", "a100"}, {"H100 PCIE", "h100-pcie"}, {"H100 NVL", "h100-nvl"},
	{"H100", "h100"}, {"H200", "h200"},
	{"GB200", "gb200"}, {"B200", "b200"}, {"RTX PRO 6000", "rtx-pro-6000"},
	{"MI250X", "mi250x"}, {"MI250", "mi250"}, {"MI300X", "mi300x"}, {"MI325X", "mi325x"}, {"MI350X", "mi350x"},
	{"MI355X", "mi355x"},
}

// Of returns the machine of a device's name, such as "NVIDIA H100 80GB HBM3", and
// whether one is known.
func Of(device string) (Machine, bool) {
	words := strings.FieldsFunc(strings.ToUpper(device), func(r rune) bool {
		return r != '.' && (r < '0' || r > '9') && (r < 'A' || r > 'Z')
	})
	for _, d := range devices {
		fits := true
		for _, w := range strings.Fields(d.words) {
			fits = fits && slices.Contains(words, w)
		}
		if fits {
			return Named(d.machine)
		}
	}
	return Machine{}, false
}

// Named returns a machine by its name, and whether there is one.
func Named(name string) (Machine, bool) {
	i := slices.IndexFunc(machines, func(m Machine) bool { return strings.EqualFold(m.Name, name) })
	if i < 0 {
		return Machine{}, false
	}
	return machines[i], true
}

// Names lists the machines that [Named] knows.
func Names() []string {
	var names []string
	for _, m := range machines {
		names = append(names, m.Name)
	}
	return names
}

// Bound returns the least time in ns that a cost takes: the longest of its memory
// traffic, its wire traffic and its operations on a pipe, each at the best rate.
func (m *Machine) Bound(c kernels.Cost, p kernels.Pipe) int64 {
	return max(over(c.HBM, max(m.Read, m.Copy)), over(c.Wire, m.Link), over(c.FLOPs, m.FLOPs[p]))
}

// over returns the ns that amount takes at rate a second.
func over(amount, rate int64) int64 {
	if rate <= 0 || amount <= 0 {
		return 0
	}
	return int64(float64(amount) / float64(rate) * 1e9)
}

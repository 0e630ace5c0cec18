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

// machines are known by name. Memory rates of the H200 were measured on one; the
// others are their maker's figures, FLOPs are dense.
var machines = []Machine{
	{Name: "h200", Read: 4487 * giga, Copy: 4290 * giga, Link: 450 * giga, FLOPs: map[kernels.Pipe]int64{
		kernels.OnVector: 67 * tera, kernels.OnMatrix: 989 * tera, kernels.OnInt8: 1979 * tera}},
	{Name: "b200", Read: 8000 * giga, Copy: 8000 * giga, Link: 900 * giga, FLOPs: map[kernels.Pipe]int64{
		kernels.OnVector: 80 * tera, kernels.OnMatrix: 2250 * tera, kernels.OnInt8: 4500 * tera, kernels.OnFP4: 9000 * tera}},
	{Name: "rtx-pro-6000", Read: 1790 * giga, Copy: 1600 * giga, Link: 64 * giga, FLOPs: map[kernels.Pipe]int64{
		kernels.OnVector: 125 * tera, kernels.OnMatrix: 500 * tera, kernels.OnInt8: 1000 * tera, kernels.OnFP4: 2000 * tera}},
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

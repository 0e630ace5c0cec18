package main

import (
	"fmt"
	"io"
	"strings"

	"glmbatch/cmd/glmbatch/gpus"
	"glmbatch/engine/fit"
	"glmbatch/replay/report"
	"glmbatch/units"
)

// print writes the diagnosis for people.
func (d *diagnosis) print(w io.Writer) error {
	var s strings.Builder
	d.machine(&s)
	if d.Model != nil {
		printFit(d.Model, &s)
	}
	if len(d.Problems) > 0 {
		s.WriteByte('\n')
	}
	for _, p := range d.Problems {
		report.Wrap(&s, "! "+p.Text, report.DefaultWidth)
		report.Wrap(&s, "  → "+p.Remedy, report.DefaultWidth)
	}
	s.WriteByte('\n')
	report.Wrap(&s, d.Verdict, report.DefaultWidth)
	_, err := io.WriteString(w, s.String())
	return err
}

// labelled writes a label and a text, which is broken at the page's width.
func labelled(s *strings.Builder, label, format string, args ...any) {
	const column = 10
	var text strings.Builder
	report.Wrap(&text, fmt.Sprintf(format, args...), report.DefaultWidth-column)
	for line := range strings.Lines(text.String()) {
		fmt.Fprintf(s, "%-*s%s", column, label, line)
		label = ""
	}
}

func (d *diagnosis) machine(s *strings.Builder) {
	build := "without CUDA"
	if d.CUDA {
		build = "with CUDA"
	}
	version := d.Program["glmbatch"]
	if r := d.Program["vcs.revision"]; r != "" {
		version += " " + r[:min(12, len(r))]
		if d.Program["vcs.modified"] == "true" {
			version += " (modified)"
		}
	}
	labelled(s, "program", "glmbatch %s, %s %s/%s, built %s", version, d.Program["go"], d.OS, d.Arch, build)
	c := &d.CPU
	labelled(s, "cpu", "%s, %d threads, %s; reads %s/s, %sFLOP/s", c.Name, c.Threads, c.SIMD, units.Bytes(c.Read),
		strings.TrimSuffix(units.Bytes(c.FLOPs), "B"))
	memory := "unknown"
	if c.Memory > 0 {
		memory = units.Bytes(c.Memory)
	}
	if c.Available > 0 {
		memory += ", " + units.Bytes(c.Available) + " available"
	}
	labelled(s, "memory", "%s", memory)
	if d.Disk.Free > 0 {
		labelled(s, "disk", "%s free in %s", units.Bytes(d.Disk.Free), d.Disk.Folder)
	}
	g := &d.GPU
	switch {
	case g.Driver == "":
		labelled(s, "driver", "no NVIDIA driver")
	case g.NVML == "" || g.CUDA == "":
		labelled(s, "driver", "NVIDIA %s", g.Driver)
	default:
		labelled(s, "driver", "NVIDIA %s, for CUDA %s; NVML %s", g.Driver, g.CUDA, g.NVML)
	}
	for i := range g.GPUs {
		labelled(s, fmt.Sprintf("gpu %d", i), "%s", gpuLine(&g.GPUs[i]))
	}
	if len(g.GPUs) == 0 && d.Opened != nil {
		labelled(s, "gpu 0", "%s, %s, %s", d.Opened.Name, d.Opened.Detail, units.Bytes(d.Opened.Memory))
	}
	if g.Hidden > 0 {
		labelled(s, "", "the machine has %d more, which CUDA_VISIBLE_DEVICES hides", g.Hidden)
	}
	for i, l := range linkLines(g.GPUs) {
		label := "links"
		if i > 0 {
			label = ""
		}
		labelled(s, label, "%s", l)
	}
	switch {
	case d.NCCL != "":
		labelled(s, "nccl", "%s", d.NCCL)
	case d.CUDA && len(g.GPUs) > 1:
		labelled(s, "nccl", "not found; ranks do without it")
	}
}

// gpuLine is what is known of a GPU.
func gpuLine(g *gpus.GPU) string {
	parts := []string{g.Name}
	add := func(known bool, format string, args ...any) {
		if known {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(g.Capability != "", "compute capability %s", g.Capability)
	add(g.Memory > 0, "%s of %s free", units.Bytes(g.Free), units.Bytes(g.Memory))
	add(g.Celsius > 0, "%d °C", g.Celsius)
	add(g.Power > 0 && g.PowerLimit > 0, "%d of %d W", g.Power/1000, g.PowerLimit/1000)
	add(g.Power == 0 && g.PowerLimit > 0, "%d W at most", g.PowerLimit/1000)
	add(g.Clock > 0 && g.MaxClock > 0, "%s of %s MHz", units.Digits(int64(g.Clock)), units.Digits(int64(g.MaxClock)))
	return strings.Join(parts, ", ")
}

// linkLines says how GPUs reach each other: one line if all do alike.
func linkLines(all []gpus.GPU) []string {
	names := map[gpus.Link]string{gpus.NVLink: "NVLink", gpus.PCIe: "PCIe", gpus.NoPeer: "no peer access",
		gpus.Unknown: "unknown"}
	kinds := map[gpus.Link]bool{}
	var lines []string
	for i := range all {
		to := map[gpus.Link][]string{}
		for j, l := range all[i].Links {
			if l != gpus.Self {
				kinds[l] = true
				to[l] = append(to[l], fmt.Sprint(j))
			}
		}
		var parts []string
		for _, l := range []gpus.Link{gpus.NVLink, gpus.PCIe, gpus.NoPeer, gpus.Unknown} {
			if len(to[l]) > 0 {
				parts = append(parts, names[l]+" to "+strings.Join(to[l], " "))
			}
		}
		if len(parts) > 0 {
			lines = append(lines, fmt.Sprintf("gpu %d: %s", i, strings.Join(parts, "; ")))
		}
	}
	if len(kinds) == 1 {
		for l := range kinds {
			lines = []string{fmt.Sprintf("%s among all %d GPUs", names[l], len(all))}
		}
	}
	return append(lines, nvlinkLines(all)...)
}

// nvlinkLines says what NVLinks each GPU has, once for those that have the same.
func nvlinkLines(all []gpus.GPU) (lines []string) {
	with := map[gpus.NVLinks][]string{}
	var order []gpus.NVLinks
	for i := range all {
		n := all[i].NVLinks
		if n.Up+n.Down == 0 {
			continue
		}
		if with[n] == nil {
			order = append(order, n)
		}
		with[n] = append(with[n], fmt.Sprint(i))
	}
	for _, n := range order {
		text := fmt.Sprintf("%d NVLinks", n.Up)
		if n.Version != "" {
			text += " " + n.Version
		}
		if n.Rate > 0 {
			text += fmt.Sprintf(", %s/s in each direction", units.Bytes(int64(n.Up)*n.Rate))
		}
		if n.Down > 0 {
			text += fmt.Sprintf("; %d are down", n.Down)
		}
		whose := "each GPU"
		if len(order) > 1 {
			whose = "gpu " + strings.Join(with[n], " ")
		}
		lines = append(lines, whose+": "+text)
	}
	return lines
}

// usualSequence is a length by which machines are compared.
const usualSequence = 8192

func printFit(m *fit.Fit, s *strings.Builder) {
	s.WriteByte('\n')
	if m.Memory == 0 {
		labelled(s, "model", "%s: %s parameters", m.Name, units.Count(m.Parameters))
		return
	}
	labelled(s, "model", "%s: %s parameters; each of %d ranks has %s of weights and %s B a cached token (%s)", m.Name,
		units.Count(m.Parameters), m.TP,
		units.Bytes(m.Weights), units.Digits(m.Token), m.KVCache)
	ranks := "1 rank"
	if m.Ranks != 1 {
		ranks = fmt.Sprintf("%d ranks", m.Ranks)
	}
	text := fmt.Sprintf("%s has %s for %s", m.Where, units.Bytes(m.Memory), ranks)
	if m.Fits {
		text += fmt.Sprintf(": room for %s cached tokens", units.Digits(m.Tokens))
		if full := float64(m.Tokens) / float64(m.Context); full < 1 {
			text += fmt.Sprintf(", %.0f %% of one context of %s", 100*full, units.Digits(int64(m.Context)))
		} else {
			text += fmt.Sprintf(", %s contexts of %s", units.Figure(full), units.Digits(int64(m.Context)))
		}
		if n := m.Sequences(usualSequence); m.Context > usualSequence && n > 0 {
			text += fmt.Sprintf(", or %s sequences of %s", units.Digits(n), units.Digits(usualSequence))
			if m.Caches > 1 {
				text += fmt.Sprintf(", %s on %d ranks", units.Digits(int64(m.Caches)*n), m.Caches)
			}
		}
	}
	labelled(s, "", "%s", text)
}

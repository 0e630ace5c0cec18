package importer

import (
	"slices"
	"strings"
)

// Some kernels do anybody's work: a softmax is attention's, a router's or a sampler's,
// and what an elementwise kernel is for its name does not say. Where it was launched
// from says it, and else the kernels around it.

// purpose is what a kernel is for, and how that is known.
type purpose struct{ class, evidence string }

// ofAnybody has the classes whose kernels do anybody's work.
var ofAnybody = []string{"softmax", "sort", "elementwise", "reduce"}

// places give kernels launched from a place the class of its work, the first that fits.
var places = []struct {
	kinds []string // classes of names
	words []string // of modules, Python frames or annotations, in small letters
	class string
}{
	{[]string{"softmax", "sort", "elementwise", "reduce"}, []string{"sampler", "sampling", "logitsprocessor",
		"sample_token"}, "sample"},
	{[]string{"elementwise", "reduce"}, []string{"rotary", "rotate_half", "rope"}, "rope"},
	{[]string{"elementwise", "reduce"}, []string{"norm"}, "norm"},
	{[]string{"softmax", "sort", "elementwise", "reduce"}, []string{"router", "moegate", "topk_gate", "gating",
		"select_experts", "grouped_topk"}, "moe.route"},
	{[]string{"softmax", "sort"}, []string{"moe", "expert"}, "moe.route"},
	{[]string{"elementwise"}, []string{"silu", "gelu", "swiglu", "activation"}, "act"},
	{[]string{"softmax"}, []string{"attention", "attn"}, "attn.softmax"},
}

// placeOf returns the class of the work at a place, and the word that told it.
func placeOf(kind string, texts ...string) (class, word string) {
	for _, p := range places {
		if !slices.Contains(p.kinds, kind) {
			continue
		}
		for _, text := range texts {
			for _, w := range p.words {
				if strings.Contains(text, w) {
					return p.class, w
				}
			}
		}
	}
	return "", ""
}

// innermost is the last part of a module's path, in small letters.
func innermost(path string) string {
	return strings.ToLower(path[strings.LastIndexByte(path, '/')+1:])
}

// findPurposes decides, for each kernel that does anybody's work, what it is for.
func (t *trace) findPurposes() {
	of := map[string]uint8{}
	give := func(i int32, c purpose) {
		if t.purpose == nil {
			t.purpose, t.purposes = make([]uint8, len(t.chunks)<<chunkBits), []purpose{{}}
		}
		n, ok := of[c.class+c.evidence]
		if !ok {
			if len(t.purposes) > 255 {
				return
			}
			n = uint8(len(t.purposes))
			of[c.class+c.evidence] = n
			t.purposes = append(t.purposes, c)
		}
		t.purpose[i] = n
	}
	anybodys := func(i int32) string {
		class, rule := t.class(t.at(i))
		if rule <= 0 || rule > len(Rules) || !slices.Contains(ofAnybody, class) {
			return ""
		}
		return class
	}
	known := map[[2]uint32]purpose{} // by name of the kernel and site
	for _, i := range t.order {
		r := t.at(i)
		if r.kind != isKernel {
			continue
		}
		if class := anybodys(i); class != "" {
			if c := t.fromSite(class, r, known); c.class != "" {
				give(i, c)
			}
		}
	}
	for rank := range t.ranks {
		lane := t.mainLane(t.order, int32(rank))
		for n, i := range lane {
			if t.purpose != nil && t.purpose[i] > 0 {
				continue
			}
			if class := anybodys(i); class == "softmax" || class == "sort" {
				if c := t.fromNeighbours(class, lane, n); c.class != "" {
					give(i, c)
				}
			}
		}
	}
}

// fromSite is the purpose by what launched a kernel.
func (t *trace) fromSite(class string, r *record, known map[[2]uint32]purpose) purpose {
	l := t.launch(r)
	if l == nil || l.site == 0 {
		return purpose{}
	}
	k := [2]uint32{r.name, l.site}
	c, ok := known[k]
	if !ok {
		s := t.sites[l.site]
		mark := strings.ToLower(t.names.list[s.mark].text)
		if found, word := placeOf(class, innermost(t.names.list[s.module].text),
			strings.ToLower(t.names.list[s.frame].text), mark); found != "" {
			c = purpose{found, "launched from " + word}
		}
		known[k] = c
	}
	return c
}

// around is how far neighbours may be, in kernels.
const around = 4

// fromNeighbours is the purpose by the kernels before and behind one: between products of
// matrices a softmax is attention's; beside work of experts, it is their router's.
func (t *trace) fromNeighbours(class string, lane []int32, n int) purpose {
	look := func(step int) (product, expert bool) {
		for k := 1; k <= around; k++ {
			i := n + step*k
			if i < 0 || i >= len(lane) || t.at(lane[i]).step != t.at(lane[n]).step {
				return product, expert
			}
			c, _ := t.class(t.at(lane[i]))
			switch {
			case strings.HasPrefix(c, "moe."):
				return product, true
			case strings.HasPrefix(c, "gemm."):
				return true, expert
			case c == "softmax" || c == "sort" || c == "elementwise" || c == "fill" || c == "reduce" ||
				strings.HasPrefix(c, "copy."):
			default:
				return product, expert
			}
		}
		return product, expert
	}
	before, expertsBefore := look(-1)
	behind, expertsBehind := look(1)
	switch {
	case expertsBefore || expertsBehind:
		return purpose{"moe.route", "beside work of experts"}
	case class == "softmax" && before && behind:
		return purpose{"attn.softmax", "between products"}
	}
	return purpose{}
}

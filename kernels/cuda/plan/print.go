package plan

import (
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"unsafe"

	"glmbatch/kernels"
)

// Print writes the launches of a list for people, a line each: the kernel, blocks (of a
// cluster) x threads, bytes of shared memory, which of the launches in front it reads from
// (-1: the one before; ^: some of what it reads it may read before it waits), sizes (+panels:
// it leaves its rows as panels too), the variant that made it and the calls that it is for. What
// lies further back than the layer
// before is left out. Layers that launch the same are one block.
func (p *Plan) Print(w io.Writer, calls []kernels.Call) {
	needs := p.needs(calls)
	type block struct {
		layer int16
		lines []string
	}
	var blocks []block
	for i := range p.Launches {
		l := &p.Launches[i]
		layer := calls[l.Calls[0]].Layer
		if n := len(blocks); n == 0 || blocks[n-1].layer != layer {
			blocks = append(blocks, block{layer: layer})
		}
		last := &blocks[len(blocks)-1]
		last.lines = append(last.lines, l.line(calls, needs[i]))
	}
	for i := 0; i < len(blocks); {
		j := i + 1
		for j < len(blocks) && slices.Equal(blocks[j].lines, blocks[i].lines) {
			j++
		}
		switch from, to := blocks[i].layer, blocks[j-1].layer; {
		case from < 0 && i == 0:
			fmt.Fprintln(w, "before the layers:")
		case from < 0:
			fmt.Fprintln(w, "behind them:")
		case from == to:
			fmt.Fprintf(w, "layer %d:\n", from)
		default:
			fmt.Fprintf(w, "layers %d to %d, each:\n", from, to)
		}
		for _, line := range blocks[i].lines {
			fmt.Fprintln(w, line)
		}
		i = j
	}
}

// needs lists for each launch those in front of it that write what it reads.
func (p *Plan) needs(calls []kernels.Call) [][]int {
	writes := map[uint32][]access{} // the last ones of each place, by launch
	all := make([][]int, len(p.Launches))
	for i := range p.Launches {
		l := &p.Launches[i]
		further := i > 0 && slices.Equal(l.Calls, p.Launches[i-1].Calls) // on with the same calls
		for _, c := range l.Calls {
			for b, as := range accesses(i, &calls[c]) {
				for _, a := range as {
					for _, w := range writes[b] {
						if near := calls[c].Layer-calls[p.Launches[w.call].Calls[0]].Layer < 2; b != 0 &&
							a.reads && a.meets(w) &&
							w.call < i && near && !slices.Contains(all[i], w.call-i) {
							all[i] = append(all[i], w.call-i)
						}
					}
				}
			}
		}
		if further && !slices.Contains(all[i], -1) {
			all[i] = append(all[i], -1)
		}
		for _, c := range l.Calls {
			for b, as := range accesses(i, &calls[c]) {
				for _, a := range as {
					if a.write {
						writes[b] = append(forget(writes[b], a), a)
					}
				}
			}
		}
		slices.Sort(all[i])
		slices.Reverse(all[i])
	}
	return all
}

func (l *Launch) line(calls []kernels.Call, needs []int) string {
	var of []string
	for _, i := range l.Calls {
		of = append(of, string(calls[i].Kernel))
	}
	if l.Messages != nil {
		return fmt.Sprintf("  %-24s %d messages  [%s] %s", "NCCL", len(l.Messages), l.By, strings.Join(of, " + "))
	}
	cluster := ""
	if l.Cluster > 1 {
		cluster = fmt.Sprintf("/%d", l.Cluster)
	}
	var after []string
	for _, n := range needs {
		after = append(after, fmt.Sprint(n))
	}
	late := ""
	if l.Late {
		late = " late"
	}
	return fmt.Sprintf("  %-24s %-22s %8s  %-8s %s [%s] %s", l.Entry,
		fmt.Sprintf("%s%s x %d", dims(l.Grid), cluster, l.Threads), thousands(l.Shared),
		strings.Join(after, ","), l.sizes(),
		l.By+late, strings.Join(of, " + "))
}

func dims(g [3]uint32) string {
	s := fmt.Sprint(g[0])
	if g[1] > 1 || g[2] > 1 {
		s += fmt.Sprintf("x%d", g[1])
	}
	if g[2] > 1 {
		s += fmt.Sprintf("x%d", g[2])
	}
	return s
}

func thousands(n uint32) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}

// shapes are the parameters that say how a launch was cut; waiting those that say what it
// may read early.
var (
	shapes = []string{"heads", "nrope", "topk", "groups", "pairs", "ranks", "phases", "share", "parts", "slices",
		"splits", "span", "tokens", "stages", "slots", "width"}
	waiting = []string{"early", "late", "waits"}
)

// sizes are rows x outputs x inputs, and how the launch was cut; of each segment.
func (l *Launch) sizes() string {
	var words []string
	extent := ""
	for _, f := range l.fields() {
		name := f.name[strings.LastIndexByte(f.name, '.')+1:]
		switch {
		case f.value.Kind() == reflect.Uintptr || f.value.IsZero() && !(name == "m" || name == "n" || name == "k"):
		case f.segment:
			words, extent = append(words, fmt.Sprintf("%s:%v", f.name, f.value)), ""
		case name == "m":
			extent = fmt.Sprint(f.value)
			words = append(words, extent)
		case (name == "n" || name == "k") && extent != "" && !f.value.IsZero():
			extent += fmt.Sprintf("x%v", f.value)
			words[len(words)-1] = extent
		case slices.Contains(waiting, name):
			words = append(words, "^"+f.name)
		case slices.Contains(shapes, name):
			words = append(words, fmt.Sprintf("%s=%v", name, f.value))
		}
	}
	if l.Panels() != 0 {
		words = append(words, "+panels")
	}
	return strings.Join(words, " ")
}

// field is one parameter.
type field struct {
	name    string
	value   reflect.Value
	segment bool // it is the blocks of one
}

// fields are the parameters of a launch, those of structs within it behind their names.
func (l *Launch) fields() (all []field) {
	var walk func(prefix string, v reflect.Value)
	walk = func(prefix string, v reflect.Value) {
		switch {
		case v.Type() == reflect.TypeFor[hfuseP]():
			b := v.Addr().Interface().(*hfuseP)
			for i, o := range b.op {
				if b.blocks[i] == 0 {
					continue
				}
				name := opNames[o]
				all = append(all, field{name, reflect.ValueOf(b.blocks[i]), true})
				walk(name+".", reflect.ValueOf(segmentParams(op(o), &b.params[i])).Elem())
			}
		case v.Kind() == reflect.Struct:
			for i := range v.NumField() {
				name := v.Type().Field(i).Name
				if f := v.Field(i); f.Kind() == reflect.Struct {
					walk(prefix+name+".", f)
				} else {
					walk(prefix+name, f)
				}
			}
		case v.Kind() == reflect.Array:
			for i := range v.Len() {
				walk(fmt.Sprintf("%s%d.", prefix, i), v.Index(i))
			}
		default:
			all = append(all, field{strings.TrimSuffix(prefix, "."), v, false})
		}
	}
	walk("", reflect.ValueOf(l.Params).Elem())
	return all
}

// segmentParams are the parameters of a segment as what they are.
func segmentParams(o op, words *[segmentWords]uint64) any {
	switch {
	case o <= opGemvFp8:
		return (*gemvP)(unsafe.Pointer(words))
	case o == opRoute:
		return (*routeP)(unsafe.Pointer(words))
	}
	return (*rowwiseP)(unsafe.Pointer(words))
}

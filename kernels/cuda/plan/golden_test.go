package plan

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"glmbatch/engine/glm5"
	"glmbatch/kernels"
)

var update = flag.Bool("update", false, "rewrite testdata")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(got, want) {
		return
	}
	a, b := bytes.Split(want, []byte("\n")), bytes.Split(got, []byte("\n"))
	for i := range min(len(a), len(b)) {
		if !bytes.Equal(a[i], b[i]) {
			t.Fatalf("line %d of %s is\n%s\nwant\n%s\nRun with -update if that is meant.", i+1, path, b[i], a[i])
		}
	}
	t.Fatalf("%s has %d lines, want %d: run with -update if that is meant", path, len(b), len(a))
}

// targets are a GPU of each architecture, and one that only has the portable kernels.
var targets = []*Target{GPU("h200"), GPU("b200"), GPU("rtx-pro-6000"),
	{Architecture: ArchitectureOf(10, 3), SMs: 160, Shared: 232448, Ranks: 1, PerGPU: 1}}

// made plans calls with memory for all that they take, and checks what every plan has.
func made(t *testing.T, how func([]kernels.Call, *Target, *Memory) (*Plan, error), calls []kernels.Call, g *Target,
	m *Memory) *Plan {
	t.Helper()
	p, err := how(calls, g, m)
	if err != nil {
		t.Fatal(err)
	}
	var have [Regions]int64
	for r, need := range p.Scratch {
		m.Scratch[r], have[r] = uintptr(r+1)<<52, need
	}
	for i, c := range p.Missing {
		m.Constants[c] = uintptr(i+1)<<50 | 1<<49
	}
	if p, err = how(calls, g, m); err != nil || !p.Fits(have) {
		t.Fatalf("with memory for all that it wants: %v, scratch %v, missing %v", err, p.Scratch, p.Missing)
	}
	covered := make([]bool, len(calls))
	for i := range p.Launches {
		l := &p.Launches[i]
		for _, c := range l.Calls {
			covered[c] = true
		}
		if l.Messages == nil {
			checkLaunch(t, l, g)
		}
	}
	if i := slices.Index(covered, false); i >= 0 && calls[i].Dims.M > 0 {
		t.Errorf("nothing is launched for call %d, %s", i, calls[i].Kernel)
	}
	return p
}

// checkLaunch compares a launch with what its image allows and its GPU has.
func checkLaunch(t *testing.T, l *Launch, g *Target) {
	t.Helper()
	i := slices.IndexFunc(Images, func(i Image) bool { return slices.Contains(i.Entries(), l.Entry) })
	if i < 0 {
		t.Fatalf("no image has %s", l.Entry)
	}
	limit := uint32(48 << 10)
	if image := &Images[i]; slices.Contains(Image{Small: image.Large}.names(), l.Entry) {
		limit = uint32(g.Shared)
	} else if l.Entry == "hfuse_1" || l.Entry == "hfuse_8" {
		limit = uint32(HFuseShared(int(g.Shared)))
	}
	if l.Shared > limit || l.Threads == 0 || l.Threads > 1024 || l.Threads%32 != 0 && l.Threads != 1 {
		t.Errorf("%s with %d bytes of shared memory, at most %d, and %d threads", l.Entry, l.Shared, limit, l.Threads)
	}
	if l.Cluster > 8 || l.Cluster > 1 && l.Grid[0]%l.Cluster != 0 {
		t.Errorf("%s: a grid of %v in clusters of %d", l.Entry, l.Grid, l.Cluster)
	}
	if l.By == "" {
		t.Errorf("nobody says why %s", l.Entry)
	}
}

func (i Image) names() []string { return i.Entries() }

// TestSteps: the launches of GLM-5's steps, on a rank of eight, as text.
func TestSteps(t *testing.T) {
	base := step{layers: 5, ranks: 1, shards: 8, cache: kernels.FP8, act: glm5.W4A16,
		dense: kernels.BF16, context: 8192,
		fed: true}
	for _, s := range []struct {
		name string
		step
	}{
		{"decode-1", base.of(1)}, {"decode-8", base.of(8)}, {"decode-64", base.of(64)}, {"decode-512", base.of(512)},
		{"prefill-8192", step{layers: 5, ranks: 1, shards: 8, cache: kernels.FP8, act: glm5.W4A16, dense: kernels.BF16,
			prefill: 8192}},
		{"decode-64-rounded", base.of(64).rounded()}, {"decode-512-rounded", base.of(512).rounded()},
		{"prefill-8192-rounded", step{layers: 5, ranks: 1, shards: 8, cache: kernels.FP8, act: glm5.W4A16,
			dense: kernels.BF16, inputs: kernels.BF16, prefill: 8192}},
	} {
		t.Run(s.name, func(t *testing.T) {
			var out bytes.Buffer
			for _, g := range targets[:3] {
				calls, m := glm5Step(t, s.step, g.Units4)
				how := Together
				if s.prefill > 0 {
					how = Each
				}
				p := made(t, how, calls, g, m)
				fmt.Fprintf(&out,
					"%v, on %s of %d multiprocessors with %d bytes of shared memory a block: %d calls, %d "+
						"launches\n\n", s.step, g.Name, g.SMs, g.Shared, len(calls), len(p.Launches))
				p.Print(&out, calls)
				fmt.Fprintln(&out)
			}
			golden(t, s.name+".txt", out.Bytes())
		})
	}
}

func (s step) of(batch int) step { s.batch = batch; return s }
func (s step) rounded() step     { s.inputs = kernels.BF16; return s }

// TestExamples: the launches of every example shape of the table, with all parameters, on
// each architecture that launches them in its own way.
func TestExamples(t *testing.T) {
	var out bytes.Buffer
	for i := range kernels.Table {
		k := &kernels.Table[i]
		for _, d := range k.Examples {
			before := ""
			for _, g := range targets {
				calls, m := example(t, k, d, g.Units4)
				p := made(t, Each, calls, g, m)
				text := ""
				for i := range p.Launches {
					l := &p.Launches[i]
					text += fmt.Sprintf("  %s\n      %s\n", l.line(calls, nil)[2:], l.describe(m.name))
				}
				if text != before {
					fmt.Fprintf(&out, "%s %s %s\n%s", k.Name, sizesOf(d), g.Name, text)
				}
				before = text
			}
		}
	}
	golden(t, "examples.txt", out.Bytes())
}

// describe writes all parameters of a launch; addresses by the name that of gives them.
func (l *Launch) describe(of func(uintptr) string) string {
	var words []string
	for _, f := range l.fields() {
		switch {
		case f.value.IsZero():
		case f.value.Kind() == reflect.Uintptr:
			words = append(words, f.name+"="+of(uintptr(f.value.Uint())))
		default:
			words = append(words, fmt.Sprintf("%s=%v", f.name, f.value))
		}
	}
	return strings.Join(words, " ")
}

// sizesOf are the dimensions that are not 0.
func sizesOf(d kernels.Dims) string {
	l := Launch{Params: &d}
	return l.describe(nil)
}

// name is where an address lies.
func (m *Memory) name(at uintptr) string {
	for i, b := range m.Buffers {
		if at >= b.Ptr && at < b.Ptr+1<<40 {
			return fmt.Sprintf("arg%d+%d", i, at-b.Ptr)
		}
	}
	for r, base := range m.Scratch {
		if at >= base && at < base+1<<48 {
			return fmt.Sprintf("%s+%d", [...]string{"lists", "work", "panels", "comm", "rows", "many", "blocks"}[r],
				at-base)
		}
	}
	for c, base := range m.Constants {
		if at == base {
			return fmt.Sprintf("%q", c.Name)
		}
	}
	if at >= m.Stamps && at < m.Stamps+1<<48 {
		return fmt.Sprintf("stamps+%d", at-m.Stamps)
	}
	return "group"
}

// example is a call of an example shape with memory of its own.
func example(t *testing.T, k *kernels.Kernel, d kernels.Dims, units Units4) ([]kernels.Call, *Memory) {
	t.Helper()
	r := &Recorder{Units4: units}
	c := kernels.Call{Kernel: k.Name, Dims: d}
	for i, s := range k.Scalars {
		c.Scalars[i] = map[string]float32{"eps": 1e-5, "scale": .125, "n_group": 1, "topk_group": 1, "norm": 1}[s]
	}
	for _, a := range k.Args {
		bytes := int64(1 << 20)
		if a.Len != nil {
			bytes = 4 * a.Len(d)
		}
		var b kernels.Buffer
		var err error
		switch {
		case a.Role == kernels.Weight:
			b, err = r.Load(weightsOf(k, d), kernels.Sharded)
		case a.Optional && (a.Name != "sel" || d.TopK == 0):
		default:
			b, err = r.Alloc(bytes, kernels.Sharded)
		}
		if err != nil {
			t.Fatal(err)
		}
		if a.Name == "pages" {
			b.Pitch = 4 * 80
		}
		c.Args = append(c.Args, b)
	}
	return []kernels.Call{c}, r.Memory()
}

func weightsOf(k *kernels.Kernel, d kernels.Dims) kernels.Weights {
	w := kernels.Weights{Format: k.Format, Count: int(max(1, d.Heads, d.Groups)), Rows: int(d.N), Cols: int(d.K)}
	switch {
	case k.Op == "embed":
		w.Use, w.Rows, w.Cols = kernels.Gather, 1000, int(d.N)
	case k.Op == "moe_up":
		w.Rows *= 2
	}
	if k.Inputs == kernels.FP4 {
		w.Use = kernels.Multiply4
	}
	return w
}

// TestVariantsCoverTable: every row of the table has a variant, every variant is one of an
// operation that there is.
func TestVariantsCoverTable(t *testing.T) {
	all := slices.Concat(foremost, portable, sm90.Variants, sm100.Variants, sm120.Variants)
	for i := range kernels.Table {
		k := &kernels.Table[i]
		if !slices.ContainsFunc(portable, func(v Variant) bool { return v.takes(&call{kernel: k}) }) && k.Inputs == "" {
			t.Errorf("no portable variant for %s", k.Name)
		}
	}
	for _, v := range all {
		if !slices.ContainsFunc(kernels.Table, func(k kernels.Kernel) bool { return k.Op == v.Op }) {
			t.Errorf("variant %s is of no operation", v.Name)
		}
		if v.Build == nil || v.Name == "" {
			t.Errorf("variant %q of %s has no name or no launches", v.Name, v.Op)
		}
	}
}

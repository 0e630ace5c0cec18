package importer

import (
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"glmbatch/kernels"
)

// TestRules holds that every rule has examples and gets them: an earlier rule
// that takes an example of a later one is an error in the order.
func TestRules(t *testing.T) {
	for i, r := range Rules {
		if len(r.Examples) == 0 {
			t.Errorf("rule %d (%s) has no example", i+1, r.Pattern)
		}
		for _, e := range r.Examples {
			class, rule := Classify(e)
			if rule != i+1 {
				t.Errorf("%q: rule %d (%s), want %d (%s)", e, rule, class, i+1, r.Class)
			}
			if !strings.Contains(r.Class, "*") && r.Class != byOperations && class != r.Class {
				t.Errorf("%q: class %s, want %s", e, class, r.Class)
			}
		}
	}
}

// TestClassify holds the classes of names, made by the rules by which public
// libraries name their kernels.
func TestClassify(t *testing.T) {
	text, err := os.ReadFile("testdata/classes.txt")
	if err != nil {
		t.Fatal(err)
	}
	names := 0
	for line := range strings.Lines(string(text)) {
		want, name, ok := strings.Cut(strings.TrimRight(line, "\n"), "\t")
		if !ok {
			t.Fatalf("line %q is no class and name", line)
		}
		names++
		if got, _ := Classify(name); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
	if names < 300 {
		t.Errorf("%d names, want 300", names)
	}
}

// TestUserRules holds that a user's rules come first and have numbers of their own.
func TestUserRules(t *testing.T) {
	rules, err := ReadRules(strings.NewReader("# mine\n\ngemm.*.moe\tmy_(up|down)_kernel\nattn  ^_fwd kernel$\n"),
		"rules.txt")
	if err != nil {
		t.Fatal(err)
	}
	c := newClassifier(rules)
	for _, want := range []struct {
		name, class string
		rule        int
	}{
		{"my_up_kernel_fp8_e4m3", "gemm.fp8.moe", len(Rules) + 1}, {"my_down_kernel", "gemm.?.moe", len(Rules) + 1},
		{"_fwd kernel", "attn", len(Rules) + 2}, {"nobody", unclassified, 0}, {"gemm_bf16", "gemm.bf16", ownRule},
	} {
		if class, rule := c.classify(want.name); class != want.class || rule != want.rule {
			t.Errorf("%s: %s by %d, want %s by %d", want.name, class, rule, want.class, want.rule)
		}
	}
	for text, want := range map[string]string{
		"gemm\n":        "line 1: no pattern",
		"#\nattn (\n":   "line 2: bad pattern",
		"? my_kernel\n": "line 1: write a class",
		"GEMM x\n":      "line 1: bad class",
		"host x\n":      "line 1: bad class",
	} {
		if _, err := ReadRules(strings.NewReader(text), "rules.txt"); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestCopySize holds sizes of copies, from the launch grid and the types in the
// name.
func TestCopySize(t *testing.T) {
	const fp8 = "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}::operator()() const::{lambda()#12}::operator()() const::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul>, 4, at::native::memory::LoadWithCast<1>, at::native::memory::StoreWithCast<1> >(int)"
	for _, c := range []struct {
		name         string
		grid, block  int32
		numel, bytes int64 // the most values, and their least traffic
	}{
		{fp8, 556848, 128, 494976 * 576, 494976 * 576 * 3},
		{"void at::native::vectorized_elementwise_kernel<8, " +
			"at::native::bfloat16_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(float)#1}, std::array<char*, " +
			"2ul> >", 12, 128, 12 * 1024, 12 * 1024 * 6},
		{"void at::native::vectorized_elementwise_kernel<4, " +
			"at::native::float8_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(c10::BFloat16)#1}, " +
			"std::array<char*, 2ul> >", 1, 128, 512, 512 * 3},
		{"void at::native::vectorized_elementwise_kernel<4, " +
			"at::native::bfloat16tofloat32_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(c10::BFloat16)#1}>", 2,
			128, 1024, 1024 * 6},
		{"void at::native::elementwise_kernel<128, 2, " +
			"at::native::gpu_kernel_impl_nocast<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(float)#1}>>", 3, 128, 768, 768 * 8},
		{"void at::native::elementwise_kernel_manual_unroll<128, 8, " +
			"at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(c10::BFloat16)#1}>", 3, 128,
			3072, 3072 * 4},
		{"void at::native::elementwise_kernel<128, 4, at::native::BinaryFunctor<float>>", 3, 128, 0, 0},
		{"void at::native::vectorized_elementwise_kernel<999, at::native::direct_copy_kernel_cuda>", 3, 128, 0, 0},
		{"CatArrayBatchedCopy", 3, 128, 0, 0},
	} {
		size, ok := sizeOfCopy(c.name)
		if !ok != (c.numel == 0) {
			t.Errorf("%.80s: a size %v, want %v", c.name, ok, c.numel != 0)
		}
		if !ok {
			continue
		}
		numel, _ := size.values(shape{grid: [3]int32{c.grid, 1, 1}, block: [3]int32{c.block, 1, 1}})
		if numel != c.numel || size.bytes(numel) != c.bytes {
			t.Errorf("%.80s: %d values and %d bytes, want %d and %d", c.name, numel, size.bytes(numel), c.numel,
				c.bytes)
		}
	}
}

// TestFindLayers finds layers that were put there, whatever is around them.
func TestFindLayers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		layers, length := rapid.IntRange(4, 40).Draw(t, "layers"), rapid.IntRange(shortestLayer, 30).Draw(t, "length")
		before, after := rapid.IntRange(0, 9).Draw(t, "before"), rapid.IntRange(0, 9).Draw(t, "after")
		if before+after > layers*length/2 {
			t.Skip("mostly not layers")
		}
		var s []uint32
		for i := range before {
			s = append(s, uint32(1000+i))
		}
		layer := make([]uint32, length)
		for i := range layer {
			layer[i] = uint32(i)
		}
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		rng.Shuffle(length, func(i, j int) { layer[i], layer[j] = layer[j], layer[i] })
		var want []int
		for range layers {
			want = append(want, len(s))
			s = append(s, layer...)
		}
		want = append(want, len(s))
		for i := range after {
			s = append(s, uint32(2000+i))
		}
		if got := findLayers(s); !slices.Equal(got, want) {
			t.Fatalf("layers at %v, want %v", got, want)
		}
	})
}

// TestLayersOfTwoForms finds layers that take turns between two forms of
// different length.
func TestLayersOfTwoForms(t *testing.T) {
	var s []uint32
	var want []int
	s = append(s, 90, 91)
	for i := range 24 {
		want = append(want, len(s))
		s = append(s, 1, 2, 3)
		if i%2 == 0 {
			s = append(s, 4)
		} else {
			s = append(s, 5, 6)
		}
		s = append(s, 7, 8)
	}
	want = append(want, len(s))
	s = append(s, 92)
	if got := findLayers(s); !slices.Equal(got, want) {
		t.Errorf("layers at %v, want %v", got, want)
	}
}

// TestNoLayers holds that sequences without repetitions have no layers, and that
// any sequence gives bounds in order.
func TestNoLayers(t *testing.T) {
	if got := findLayers([]uint32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}); got != nil {
		t.Errorf("layers at %v", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SliceOfN(rapid.Uint32Range(0, 5), 0, 200).Draw(t, "sequence")
		got := findLayers(s)
		if !slices.IsSorted(got) || len(got) > 0 && (got[0] < 0 || got[len(got)-1] > len(s)) {
			t.Fatalf("layers at %v of %d", got, len(s))
		}
	})
}

// TestLongPeriod holds that sequences too long for trying every length give the
// same answer.
func TestLongPeriod(t *testing.T) {
	var s []uint32
	for i := range 100 {
		for k := range 97 {
			s = append(s, uint32(k))
		}
		if i == 0 {
			s = append(s, 1000)
		}
	}
	if len(s) <= longSequence {
		t.Fatal("the sequence is not long")
	}
	if got, want := findPeriod(s, 0.5), (period{start: 98, length: 97, repeats: 99}); got != want {
		t.Errorf("period %+v, want %+v", got, want)
	}
}

// Our own kernels, as in a trace that we exported, have the table's classes.
func TestOwnKernels(t *testing.T) {
	for _, k := range kernels.Table {
		if class, rule := Classify(string(k.Name)); class != string(k.Class) || rule != ownRule {
			t.Errorf("%s is %s by rule %d, want %s by the table", k.Name, class, rule, k.Class)
		}
	}
}

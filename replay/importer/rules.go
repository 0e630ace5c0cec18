package importer

import (
	"regexp"
	"slices"
	"strings"

	"glmbatch/kernels"
)

// Rule gives kernels whose name matches a class. The first rule that matches
// wins, so the order is part of the meaning. A star in the class stands for the
// number format that the name tells ([precision]).
type Rule struct {
	Pattern  string   // RE2
	Class    string   // gemm.*: gemm.bf16, gemm.fp8 …, or gemm.? where the name does not tell
	Examples []string // names, or pieces of names, that the rule is for
}

const unclassified = "unclassified"

// Rules is the ordered table. Its patterns come from the naming rules of public
// libraries: PyTorch, cuBLAS, CUTLASS, cuDNN, NCCL, Triton, FlashAttention, FlashInfer,
// FlashMLA, DeepGEMM, DeepEP, NVSHMEM, mscclpp, pplx, SageAttention, TensorRT-LLM, vLLM, SGLang,
// FBGEMM and, for AMD, Tensile, Composable Kernel, aiter, MIOpen and RCCL.
//
// Kernels that move cache entries carry names of attention libraries; quantisation,
// attention and convolutions carry those of matrix products, collectives those of
// reductions: the particular comes before the general.
var Rules = slices.Concat(cacheRules, commRules, quantRules, attentionRules, convRules, moeRules, embedRules, gemmRules,
	tensorRules)

// classifier has the rules of an import: the user's own, which come first, and [Rules].
type classifier struct {
	own []userRule
}

type userRule struct {
	re    *regexp.Regexp
	class string
}

// newClassifier compiles a user's rules, which were validated.
func newClassifier(own []Rule) classifier {
	var c classifier
	for _, r := range own {
		c.own = append(c.own, userRule{regexp.MustCompile(r.Pattern), r.Class})
	}
	return c
}

// numbers is one more than the largest number of a rule.
func (c *classifier) numbers() int { return len(Rules) + len(c.own) + 1 }

// classify is [Classify] with the user's rules, whose numbers follow those of [Rules].
func (c *classifier) classify(kernel string) (class string, rule int) {
	for i, r := range c.own {
		if r.re.MatchString(kernel) {
			return starred(r.class, kernel), len(Rules) + 1 + i
		}
	}
	return Classify(kernel)
}

var compiledRules = func() []*regexp.Regexp {
	out := make([]*regexp.Regexp, len(Rules))
	for i, r := range Rules {
		out[i] = regexp.MustCompile(r.Pattern)
	}
	return out
}()

// ruleWords has, for each rule, words of which a name that it matches has one.
var ruleWords = func() [][]string {
	out := make([][]string, len(Rules))
	for i, r := range Rules {
		out[i] = wordsOf(r.Pattern)
	}
	return out
}()

// ownRule stands for the kernel table: the name is one of glmbatch's own, as in a
// trace that it exported itself.
const ownRule = -1

// Classify returns the class of a kernel's name and the number of the rule that
// decided, from 1; -1 where the kernel table did, 0 and "unclassified" where
// nothing matches.
func Classify(kernel string) (class string, rule int) {
	if k := kernels.Lookup(kernels.Name(kernel)); k != nil {
		return string(k.Class), ownRule
	}
	for i, re := range compiledRules {
		if !hasOne(kernel, ruleWords[i]) || !re.MatchString(kernel) {
			continue
		}
		if Rules[i].Class == byOperations {
			return tritonClass(kernel), i + 1
		}
		return starred(Rules[i].Class, kernel), i + 1
	}
	return unclassified, 0
}

// starred puts the name's number format where the class has a star.
func starred(class, kernel string) string {
	if !strings.Contains(class, "*") {
		return class
	}
	return strings.Replace(class, "*", precision(kernel), 1)
}

// byOperations is the class of the rule for kernels that torch.compile wrote: their
// names list the operations, so tritonClass decides.
const byOperations = "by operations"

// tritonFused is that rule.
const tritonFused = `^triton_(poi|red|per|tem|for|mm|bmm)_`

// tritonClasses are tried in order on the list of operations: what costs most
// names the kernel.
var tritonClasses = []struct{ piece, class string }{
	{"convolution", "conv"}, {"flex_attention", "attn"}, {"mm", "gemm.?"}, {"bmm", "gemm.?"}, {"addmm", "gemm.?"},
	{"native_layer_norm_backward", "norm.bwd"}, {"native_batch_norm_backward", "norm.bwd"}, {"_native_batch_norm_legit",
		"norm.batch"},
	{"native_batch_norm", "norm.batch"}, {"norm", "norm"}, {"mean_mul_pow_rsqrt", "norm"}, {"rsqrt", "norm"},
	{"silu", "act"}, {"gelu", "act"}, {"sigmoid", "act"}, {"relu", "act"}, {"tanh", "act"},
	{"rotary", "rope"}, {"cos", "rope"}, {"sin", "rope"}, {"softmax", "softmax"}, {"_softmax", "softmax"}, {"argmax",
		"sample"},
	{"topk", "sort"}, {"sort", "sort"}, {"embedding", "embed"}, {"index_put", "copy.scatter"}, {"index", "copy.gather"},
	{"gather", "copy.gather"}, {"scatter", "copy.scatter"}, {"to_copy", "copy.cast"}, {"constant_pad_nd",
		"copy.layout"},
	{"clone", "copy.layout"}, {"cat", "copy.layout"}, {"copy", "copy.layout"},
	{"sum", "reduce"}, {"mean", "reduce"}, {"amax", "reduce"}, {"cumsum", "reduce"}, {"zeros", "fill"}, {"full",
		"fill"},
	{"add", "elementwise"}, {"mul", "elementwise"}, {"sub", "elementwise"}, {"div", "elementwise"}, {"where",
		"elementwise"}, {"pow", "elementwise"},
}

var tritonBare = regexp.MustCompile(`^triton_poi_fused_\d+$`)

func tritonClass(name string) string {
	if tritonBare.MatchString(name) {
		return "elementwise" // pointwise, of operations without a name
	}
	name += "_"
	for _, c := range tritonClasses {
		if strings.Contains(name, "_"+c.piece+"_") {
			return c.class
		}
	}
	return unclassified
}

package verify

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"glmbatch/engine/glm5"
	"glmbatch/kernels"
)

// Report is how a model does against a reference.
type Report struct {
	Ranks   int            `json:"ranks"`
	KVCache kernels.Format `json:"kv_cache"`
	Act     glm5.Act       `json:"act"`
	Dense   kernels.Format `json:"dense_weights,omitempty"`
	// Activations: BF16 if products round their inputs to it.
	Activations kernels.Format `json:"activations,omitempty"`
	Reference   string         `json:"reference"` // the key that logits are compared with
	Tolerance   float64        `json:"tolerance"` // of settled logits, absolute, and hidden states, relative; 0: none
	Exact       bool           `json:"exact"`     // choices must be the reference's
	Prompts     []Prompt       `json:"prompts"`
}

// Prompt is one prompt's figures. Counts of what the reference lacks are 0.
type Prompt struct {
	Prompt int     `json:"prompt"`
	Tokens int     `json:"tokens"`
	Logits float64 `json:"logits_max_diff"` // absolute, of all rows

	// Rows before the first whose experts or positions differ from those of a
	// run with a float32 cache and no rounded activations.
	Settled       int     `json:"settled"`
	SettledLogits float64 `json:"settled_logits_max_diff"`

	Hidden      float64 `json:"hidden_max_diff"` // relative to the layer's largest value
	HiddenLayer int     `json:"hidden_layer"`    // where: 0 is the embedding; -1: not compared

	Routes      Sets    `json:"routes"`       // a token's experts in a layer
	RouteWeight float64 `json:"route_weight"` // largest difference where the experts are the same
	Selections  Sets    `json:"selections"`   // a token's positions of an indexer

	Greedy      int `json:"greedy"`       // tokens generated and compared
	GreedyEqual int `json:"greedy_equal"` // of them
	GreedyAfter int `json:"greedy_after"` // tokens after one that differed in a near tie: not comparable

	MTP        float64 `json:"mtp_max_diff"`
	MTPTokens  int     `json:"mtp_tokens"` // 0: not compared
	MTPSettled int     `json:"mtp_settled"`
	SettledMTP float64 `json:"settled_mtp_max_diff"`

	Differences []Difference `json:"differences,omitempty"` // of choices, where they must be the reference's

	Faults []string `json:"faults,omitempty"` // what is out of tolerance
}

// Sets counts comparisons of sets.
type Sets struct {
	Total  int   `json:"total"`
	Equal  int   `json:"equal"`
	Values int64 `json:"values"` // members of the reference's sets
	Shared int64 `json:"shared"` // of them, in ours too
	Tied   int   `json:"tied"`   // comparisons that differ within rounding
	After  int   `json:"after"`  // that differ beyond a tie: their inputs do
}

// wrong is how many comparisons differ for no reason that is known.
func (s *Sets) wrong() int { return s.Total - s.Equal - s.Tied - s.After }

// compare counts two sorted sets without duplicates.
func (s *Sets) compare(got, want []int32) bool {
	s.Total++
	s.Values += int64(len(want))
	shared := 0
	for i, j := 0, 0; i < len(got) && j < len(want); {
		switch {
		case got[i] == want[j]:
			shared, i, j = shared+1, i+1, j+1
		case got[i] < want[j]:
			i++
		default:
			j++
		}
	}
	s.Shared += int64(shared)
	equal := shared == len(want) && len(got) == len(want)
	if equal {
		s.Equal++
	}
	return equal
}

// Overlap is the share of the reference's members that are ours too.
func (s Sets) Overlap() float64 {
	if s.Values == 0 {
		return 1
	}
	return float64(s.Shared) / float64(s.Values)
}

// OK reports that nothing is out of tolerance.
func (r *Report) OK() bool {
	return !slices.ContainsFunc(r.Prompts, func(p Prompt) bool { return len(p.Faults) > 0 })
}

// Worst returns the largest difference of logits that no tie explains.
func (r *Report) Worst() float64 {
	worst := 0.0
	for _, p := range r.Prompts {
		if p.Routes.Tied+p.Selections.Tied > 0 { // rows beyond a tie are wrong for another reason
			worst = larger(worst, p.SettledLogits)
		} else {
			worst = larger(worst, p.Logits)
		}
	}
	return worst
}

// judge fills in the faults of a prompt.
func (r *Report) judge(p *Prompt) {
	fault := func(format string, args ...any) { p.Faults = append(p.Faults, fmt.Sprintf(format, args...)) }
	for _, d := range []struct {
		what     string
		diff     float64
		demanded bool
	}{
		{"logits", p.SettledLogits, true}, {"hidden states", p.Hidden, r.Exact}, {"prediction logits", p.SettledMTP,
			true},
		{"logits", p.Logits, r.Exact && p.Routes.Tied+p.Selections.Tied == 0}, {"prediction logits", p.MTP, r.Exact},
	} {
		switch {
		case math.IsNaN(d.diff):
			fault("%s are not numbers", d.what)
		case d.demanded && r.Tolerance > 0 && d.diff > r.Tolerance:
			fault("%s differ by %.2g, more than %.2g", d.what, d.diff, r.Tolerance)
		}
	}
	if n := p.Routes.wrong(); r.Exact && n > 0 {
		fault("%d of %d routings differ", n, p.Routes.Total)
	}
	if n := p.Selections.wrong(); r.Exact && n > 0 {
		fault("%d of %d selections differ", n, p.Selections.Total)
	}
	if r.Tolerance > 0 && p.GreedyEqual < p.Greedy {
		fault("greedy token %d differs where the reference is sure", p.GreedyEqual)
	}
}

// String is the report as a table.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "tp %d, cache %s, activations %s, against %s", r.Ranks, r.KVCache, r.Act, r.Reference)
	if r.Dense == kernels.FP8 {
		fmt.Fprintf(&b, ", dense weights %s", r.Dense)
	}
	if r.Activations != "" {
		fmt.Fprintf(&b, ", inputs of products %s", r.Activations)
	}
	if r.Tolerance > 0 {
		fmt.Fprintf(&b, ", tolerance %g", r.Tolerance)
	}
	fmt.Fprintf(&b, "\n%6s %6s %9s %18s %13s %15s %15s %9s %9s %18s\n", "prompt", "tokens", "logits", "settled (rows)",
		"hidden (layer)", "routes", "selections", "greedy", "mtp", "settled (rows)")
	for _, p := range r.Prompts {
		hidden, mtp, settledMTP := "-", "-", "-"
		if p.HiddenLayer >= 0 {
			hidden = fmt.Sprintf("%.1e (%d)", p.Hidden, p.HiddenLayer)
		}
		if p.MTPTokens > 0 {
			mtp, settledMTP = fmt.Sprintf("%.1e", p.MTP), fmt.Sprintf("%.1e (%d)", p.SettledMTP, p.MTPSettled)
		}
		greedy := fmt.Sprintf("%d/%d", p.GreedyEqual, p.Greedy)
		if p.GreedyAfter > 0 {
			greedy += "*"
		} else if p.Greedy == 0 {
			greedy = "-"
		}
		fmt.Fprintf(&b, "%6d %6d %9.1e %18s %13s %15s %15s %9s %9s %18s  %s\n", p.Prompt, p.Tokens, p.Logits,
			fmt.Sprintf("%.1e (%d)", p.SettledLogits, p.Settled),
			hidden, p.Routes, p.Selections, greedy, mtp, settledMTP, verdict(p))
	}
	for _, p := range r.Prompts {
		for i, d := range p.Differences {
			if i == 10 {
				fmt.Fprintf(&b, "prompt %d: %d more choices that differ\n", p.Prompt, len(p.Differences)-i)
				break
			}
			fmt.Fprintf(&b, "prompt %d, %v\n", p.Prompt, d)
		}
	}
	return b.String()
}

func verdict(p Prompt) string {
	if len(p.Faults) == 0 {
		return "ok"
	}
	return strings.Join(p.Faults, "; ")
}

// String is "equal/total", with the overlap where they differ.
func (s Sets) String() string {
	if s.Total == 0 {
		return "-"
	}
	if s.Equal == s.Total {
		return fmt.Sprintf("%d/%d", s.Equal, s.Total)
	}
	return fmt.Sprintf("%d/%d %.1f%%", s.Equal, s.Total, 100*s.Overlap())
}

// larger is max, but what is no number stays.
func larger(a, b float64) float64 {
	if math.IsNaN(a) || math.IsNaN(b) {
		return math.NaN()
	}
	return max(a, b)
}

// maxDiff returns the largest absolute difference.
func maxDiff(got, want []float32) float64 {
	worst := 0.0
	for i := range want {
		worst = larger(worst, math.Abs(float64(got[i])-float64(want[i])))
	}
	return worst
}

// scale returns the largest absolute value, 1 where all are 0.
func scale(v []float32) float64 {
	most := 0.0
	for _, x := range v {
		most = max(most, math.Abs(float64(x)))
	}
	if most == 0 {
		return 1
	}
	return most
}

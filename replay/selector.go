package replay

import (
	"errors"
	"fmt"
	"glmbatch/kernels"
	"slices"
	"strconv"
	"strings"
)

// Selector says which steps to capture.
type Selector struct {
	Kind string // prefill, decode or mixed; "": any
	Rule string // every, step, first or slowest
	N    int64
}

// Rules are what a selector can say, with what N means.
var rules = map[string]string{
	"every":   "every N-th step",
	"step":    "step N",
	"first":   "the first N steps",
	"slowest": "the N slowest steps",
}

const maxSlowest = 1000 // files of one selector

// ParseSelectors reads a list such as "decode:every=500,slowest=3".
func ParseSelectors(s string) ([]Selector, error) {
	var all []Selector
	var errs []error
	for _, item := range strings.Split(s, ",") {
		x, err := parseSelector(strings.TrimSpace(item))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, x)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return all, nil
}

func parseSelector(s string) (Selector, error) {
	bad := func(why string) (Selector, error) {
		return Selector{}, fmt.Errorf("%q: %s; write decode:every=500, step=12, first=3 or prefill:slowest=2", s, why)
	}
	var x Selector
	rest := s
	if kind, after, ok := strings.Cut(s, ":"); ok {
		if !slices.Contains(kernels.StepKinds, kind) {
			return bad(fmt.Sprintf("no kind of step %q: prefill, decode or mixed", kind))
		}
		x.Kind, rest = kind, after
	}
	rule, number, ok := strings.Cut(rest, "=")
	if rules[rule] == "" {
		return bad(fmt.Sprintf("no rule %q: every, step, first or slowest", rule))
	}
	n, err := strconv.ParseInt(number, 10, 64)
	least := int64(1)
	if rule == "step" {
		least = 0
	}
	switch {
	case !ok || err != nil:
		return bad(fmt.Sprintf("%s needs a number", rule))
	case n < least:
		return bad(fmt.Sprintf("%s=%d is less than %d", rule, n, least))
	case rule == "slowest" && n > maxSlowest:
		return bad(fmt.Sprintf("slowest=%d is more than %d", n, maxSlowest))
	case rule == "step" && x.Kind != "":
		return bad("a single step is named without its kind")
	}
	x.Rule, x.N = rule, n
	return x, nil
}

func (x Selector) String() string {
	s := fmt.Sprintf("%s=%d", x.Rule, x.N)
	if x.Kind != "" {
		s = x.Kind + ":" + s
	}
	return s
}

// watch is a selector at work.
type watch struct {
	Selector
	seen    int64  // steps of its kind
	slowest []kept // at most N, of slowest
}

// kept is a captured step of a slowest rule.
type kept struct{ step, wall int64 }

// wants says whether a step is to be captured. It is asked once for each step.
func (w *watch) wants(step int64, kind string, wall int64) bool {
	if w.Kind != "" && w.Kind != kind {
		return false
	}
	w.seen++
	switch w.Rule {
	case "every":
		return (w.seen-1)%w.N == 0
	case "step":
		return step == w.N
	case "first":
		return w.seen <= w.N
	}
	return int64(len(w.slowest)) < w.N || wall > w.slowest[w.fastest()].wall
}

// keep notes a step that was captured and returns the one that is no longer
// among the slowest; -1: none.
func (w *watch) keep(step, wall int64) int64 {
	if w.Rule != "slowest" {
		return -1
	}
	if int64(len(w.slowest)) < w.N {
		w.slowest = append(w.slowest, kept{step, wall})
		return -1
	}
	i := w.fastest()
	old := w.slowest[i].step
	w.slowest[i] = kept{step, wall}
	return old
}

func (w *watch) fastest() int {
	at := 0
	for i := range w.slowest {
		if w.slowest[i].wall < w.slowest[at].wall {
			at = i
		}
	}
	return at
}

package importer

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// A rule whose words a name lacks does not match it: looking first changes no class.
func TestWordsOfRules(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var names, pieces []string
	for _, rule := range Rules {
		pieces = append(pieces, wordsOf(rule.Pattern)...)
	}
	for range 3000 {
		var b strings.Builder
		for range 1 + r.IntN(4) {
			b.WriteString(pieces[r.IntN(len(pieces))])
			b.WriteString([]string{"", "_", "<", "kernel", "::", "bf16", " "}[r.IntN(7)])
		}
		names = append(names, b.String())
	}
	known := 0
	for i, re := range compiledRules {
		words := wordsOf(Rules[i].Pattern)
		if words != nil {
			known++
		}
		for _, name := range names {
			if re.MatchString(name) && !hasOne(name, words) {
				t.Fatalf("%s matches %q, which has none of %q", Rules[i].Pattern, name, words)
			}
		}
	}
	if 10*known < 9*len(Rules) {
		t.Errorf("words are known of %d of %d rules", known, len(Rules))
	}
}

func BenchmarkClassifyNames(b *testing.B) {
	for i := range b.N {
		Classify(fmt.Sprintf("void mine::some_function_%d<float, 128, (anonymous namespace)::Policy>(float const*, "+
			"float*, int)", i))
	}
}

package datasets

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func inputNamed(names ...string) *Input {
	in := &Input{root: &node{}}
	for _, name := range names {
		in.root.fields = append(in.root.fields, &node{name: name})
	}
	return in
}

func TestNaming(t *testing.T) {
	ours := []string{"response", "seed", "run_id"}
	for _, c := range []struct {
		n    Naming
		in   string
		want string
		err  string
	}{
		{Naming{}, "prompt", "response seed run_id", ""},
		{Naming{}, "prompt Seed", "glm_response glm_seed glm_run_id", ""},
		{Naming{}, "response seed run_id", "glm_response glm_seed glm_run_id", ""},
		{Naming{}, "response seed run_id glm_response glm_seed glm_run_id", "glm2_response glm2_seed glm2_run_id", ""},
		{Naming{}, "RESPONSE GLM_run_id glm2_SEED", "glm3_response glm3_seed glm3_run_id", ""},
		{Naming{Response: "summary"}, "prompt", "summary seed run_id", ""},
		{Naming{Response: "summary"}, "prompt seed response", "summary glm_seed glm_run_id", ""},
		{Naming{Prefix: "judge_"}, "response glm_seed", "judge_response judge_seed judge_run_id", ""},
		{Naming{Prefix: "judge_", Response: "verdict"}, "response", "verdict judge_seed judge_run_id", ""},
		{Naming{Response: "Prompt"}, "prompt", "", "the input has a column prompt already"},
		{Naming{Prefix: "x_"}, "X_Seed", "", "--prefix x_: there is a column X_Seed already"},
		{Naming{Response: "Seed"}, "prompt", "Seed glm_seed glm_run_id", ""},
		{Naming{Prefix: "x_", Response: "X_seed"}, "prompt", "", "--prefix x_"},
	} {
		names, _, err := c.n.choose(inputNamed(strings.Fields(c.in)...), ours)
		if got := strings.Join(names, " "); got != c.want || (err == nil) != (c.err == "") || err != nil &&
			!strings.Contains(err.Error(), c.err) {
			t.Errorf("%+v of %s: %q, %v, want %q, %s", c.n, c.in, got, err, c.want, c.err)
		}
	}
}

// Whatever the input's columns are called, names end, differ from them and from each
// other in any case, and all have the same prefix.
func TestNamingProperties(t *testing.T) {
	part := rapid.SampledFrom([]string{"glm_", "glm2_", "GLM3_", "response", "seed", "Seed", "x", ""})
	rapid.Check(t, func(t *rapid.T) {
		var have []string
		for range rapid.IntRange(0, 12).Draw(t, "columns") {
			have = append(have, part.Draw(t, "a")+part.Draw(t, "b"))
		}
		n := Naming{Response: rapid.SampledFrom([]string{"", "x", "glm_seed", "other"}).Draw(t, "response")}
		names, prefix, err := n.choose(inputNamed(have...), []string{"response", "seed"})
		if err != nil {
			return
		}
		for i, name := range names {
			for _, other := range slices.Concat(have, names[:i]) {
				if strings.EqualFold(name, other) {
					t.Fatalf("%q is there already: %q of %q", name, names, have)
				}
			}
		}
		if names[1] != prefix+"seed" {
			t.Fatalf("%q with prefix %q", names, prefix)
		}
	})
}

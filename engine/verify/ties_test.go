package verify

import (
	"math"
	"strings"
	"testing"

	"glmbatch/engine/checkpoint"
)

// TestTies: selections that differ among equal scores are settled; those that our
// scores contradict are faults, with the margin.
func TestTies(t *testing.T) {
	base := synthetic{"plain", nil, all("f32")}
	ids := []int32{3, 14, 15, 9, 26, 53, 58, 9, 7, 93, 23, 84}
	for _, tt := range []struct {
		name  string
		edit  func(tensors map[string]entry)
		order func(m *reference)
		ok    bool
	}{
		{"the same", nil, func(*reference) {}, true},
		{"equal scores", func(m map[string]entry) { // products are all below 0, so ReLU leaves 0
			for name, e := range m {
				if strings.HasSuffix(name, "indexer.weights_proj.weight") {
					clear(e.data)
				}
			}
		}, func(m *reference) { m.later = true }, true},
		{"a fault", nil, func(m *reference) { m.worst = true }, false},
	} {
		files := base.filesWith(t, 5, tt.edit)
		ck, err := checkpoint.FromFiles(files)
		if err != nil {
			t.Fatal(err)
		}
		m := newReference(t, ck)
		tt.order(m)
		want, err := Read(m.expected([][]int32{ids}, 1))
		if err != nil {
			t.Fatal(err)
		}
		for _, tp := range []int{1, 2} {
			r, err := Run(t.Context(), ck, want, opener(tp), Options{})
			if err != nil {
				t.Fatal(err)
			}
			p := r.Prompts[0]
			if r.OK() != tt.ok {
				t.Errorf("%s, tp %d: ok %v\n%v", tt.name, tp, r.OK(), r)
			}
			switch {
			case tt.name == "the same":
				if len(p.Differences) != 0 || p.Settled != len(ids) {
					t.Errorf("%s: %+v", tt.name, p)
				}
			case tt.ok:
				if p.Selections.Tied == 0 || p.Settled != m.c.IndexTopK || !p.Differences[0].Tie ||
					p.Differences[0].Margin != 0 || !strings.Contains(r.String(), "a tie") {
					t.Errorf("%s: %+v\n%v", tt.name, p, r)
				}
			default:
				if d := p.Differences[0]; d.Tie || d.What != "selection" || d.Margin <= 0 ||
					!strings.Contains(r.String(), "a fault") {
					t.Errorf("%s: %v", tt.name, d)
				}
			}
		}
	}
}

func TestContradiction(t *testing.T) {
	scores := []float64{5, 4, 3, 3, 2, -8}
	for _, tt := range []struct {
		name         string
		ours, theirs []int32
		want         choice
	}{
		{"the same", []int32{0, 1}, []int32{0, 1}, choice{0, math.MaxFloat64, 0}},
		{"a tie", []int32{0, 1, 2}, []int32{0, 1, 3}, choice{1, 0, 8}},
		{"a gap", []int32{0, 1, 2}, []int32{0, 1, 4}, choice{1, 1, 8}},
		{"two", []int32{0, 1}, []int32{2, 4}, choice{2, 3, 8}},
		{"fewer", []int32{0, 1}, []int32{0}, choice{0, math.MaxFloat64, 0}},
		{"out of range", []int32{0}, []int32{9}, choice{1, math.MaxFloat64, 0}},
	} {
		if got := contradiction(scores, tt.ours, tt.theirs); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
	if c := contradiction([]float64{math.NaN(), 1}, []int32{0}, []int32{1}); c.margin <= tieBound*c.scale {
		t.Errorf("what is no number is a tie: %+v", c)
	}
}

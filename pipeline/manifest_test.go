package pipeline

import (
	"maps"
	"strings"
	"testing"

	"glmbatch/datasets"
)

// TestDiffers: what makes another job is named, and a model's path does not.
func TestDiffers(t *testing.T) {
	first := func() *Manifest {
		m := &Manifest{Settings: map[string]string{"--seed": "0"},
			Input: []datasets.File{{Path: "a", Size: 1, Rows: 1, Footer: "f"}},
			Model: ModelInfo{Name: "models/x", Hash: "h", Text: "t", Ranks: 8, Device: "cpu"}}
		m.RunID = runID(m)
		return m
	}
	for _, c := range []struct {
		change func(m *Manifest)
		want   string // "": the same job
	}{
		{func(m *Manifest) {}, ""},
		{func(m *Manifest) { m.Model.Name = "./models/x" }, ""},
		{func(m *Manifest) { m.Input[0].Path = "./a" }, ""},
		{func(m *Manifest) { m.Settings["--seed"] = "1" }, `--seed was "0" and is "1"`},
		{func(m *Manifest) { m.Settings["--layout"] = "throughput" }, `--layout was left out and is "throughput"`},
		{func(m *Manifest) { delete(m.Settings, "--seed") }, `--seed was "0" and is left out`},
		{func(m *Manifest) { m.Settings["--seed"], m.Settings["--act"], m.Model.Ranks = "1", "int8", 2 },
			`--act was left out and is "int8", --seed was "0" and is "1", --tp was 8 and is 2`},
		{func(m *Manifest) { m.Settings["--seed"], m.Settings["columns"] = "1", "a" }, `--seed was "0" and is "1"`},
		{func(m *Manifest) { m.Settings["columns"] = "a" }, `columns was left out and is "a"`},
		{func(m *Manifest) { m.Input[0].Footer = "g" }, "input file a has changed"},
		{func(m *Manifest) { m.Input = append(m.Input, m.Input[0]) }, "it had 1 input files and has 2"},
		{func(m *Manifest) { m.Model.Ranks = 4 }, "--tp was 8 and is 4"},
		{func(m *Manifest) { m.Model.Device = "cuda" }, "--device was cpu and is cuda"},
		{func(m *Manifest) { m.Model.Name, m.Model.Hash = "models/y", "i" }, "the model was models/x and is models/y"},
		{func(m *Manifest) { m.Model.Text = "u" }, "with other files"},
	} {
		m := first()
		m.Settings = maps.Clone(m.Settings)
		c.change(m)
		m.RunID = runID(m)
		if got := m.differs(first()); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("it differs in %q, want %q", got, c.want)
		}
	}
}

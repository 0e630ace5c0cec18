package chat

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFeatures compares templates, one for each thing that templates do, with
// Jinja2's renders; interop/tokenizer/chat_golden.py makes them.
func TestFeatures(t *testing.T) {
	for i, g := range goldens(t, "features.jsonl.gz") {
		text := g.Source
		if text == "" {
			text = source(t, g.Template)
		}
		tmpl, err := Load(text, nil)
		if err != nil {
			t.Errorf("%d: %s\n%v", i, g.Source, err)
			continue
		}
		got, err := render(t, tmpl, g.input())
		if (err != nil) != (g.Error != "") {
			t.Errorf("%d: %s%s\nerror %v, want %q", i, g.Source, g.Template, err, g.Error)
			continue
		}
		if diff := cmp.Diff(g.Render, got); diff != "" {
			t.Errorf("%d: %s%s (-want +got):\n%s", i, g.Source, g.Template, diff)
		}
	}
}

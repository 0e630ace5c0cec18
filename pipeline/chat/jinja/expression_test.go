package jinja

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// expression is a template and what Jinja2 makes of it; interop/tokenizer/
// expressions.py writes them.
type expression struct {
	Source string
	Render *string // nil: Jinja2 raises an error
	Error  string
}

func expressions(t testing.TB) []expression {
	t.Helper()
	data, err := os.ReadFile("testdata/expressions.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var all []expression
	for line := range strings.Lines(string(data)) {
		var e expression
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

// TestExpressions compares with Jinja2 whatever a template may do.
func TestExpressions(t *testing.T) {
	all := expressions(t)
	if len(all) < 300 {
		t.Fatalf("%d expressions", len(all))
	}
	for _, e := range all {
		got, err := render(e.Source, "")
		switch {
		case e.Render == nil && err == nil:
			t.Errorf("%s\ngives %q, want the error %s", e.Source, got, e.Error)
		case e.Render != nil && err != nil:
			t.Errorf("%s\n%v, want %q", e.Source, err, *e.Render)
		case e.Render != nil && got != *e.Render:
			t.Errorf("%s\ngives %q, want %q", e.Source, got, *e.Render)
		}
	}
}

package metrics

import (
	"fmt"
	"glmbatch/golden"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDocs: the documentation has the metrics that there are.
func TestDocs(t *testing.T) {
	var b strings.Builder
	b.WriteString("| metric | type | labels | what it says |\n|---|---|---|---|\n")
	for _, m := range Table {
		labels := ""
		for i, l := range m.Labels {
			if i > 0 {
				labels += ", "
			}
			labels += "`" + l + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.Name, m.Type, labels, m.Help)
	}
	path := filepath.Join("..", "..", "..", "docs", "metrics.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const open, end = "<!-- metrics -->\n", "<!-- /metrics -->"
	before, rest, ok := strings.Cut(string(text), open)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("docs/metrics.md has no table")
	}
	want := before + open + b.String() + end + after
	if want == string(text) {
		return
	}
	if !golden.Update() {
		t.Fatal("docs/metrics.md has other metrics than the program: go test ./cmd/glmbatch/metrics -update")
	}
	if err := os.WriteFile(path, []byte(want), 0o666); err != nil {
		t.Fatal(err)
	}
}

package report

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"glmbatch/replay/attribute"
)

// Narrow terminals lose columns before names are cut to nothing.
func TestNarrowTables(t *testing.T) {
	long := load(t, example(false), Options{By: attribute.ByKernel})
	for _, c := range []struct {
		width    int
		interval bool
	}{{100, true}, {84, true}, {68, false}} {
		var b bytes.Buffer
		if err := long.Write(&b, "text", Style{Width: c.width}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(b.String(), "95 % of median"); got != c.interval {
			t.Errorf("at width %d the interval is shown: %v", c.width, got)
		}
		for line := range strings.Lines(b.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > c.width {
				t.Errorf("at width %d a line has %d columns: %s", c.width, n, line)
			}
		}
	}
}

package pages

import "testing"

// TestBudgets holds the limits: a larger one lets a few bytes ask for more memory
// than a machine may have for a reader.
func TestBudgets(t *testing.T) {
	for name, c := range map[string]struct{ is, most int64 }{
		"MaxFooter":     {MaxFooter, 256 << 20},
		"MaxColumns":    {MaxColumns, 100_000},
		"MaxChunks":     {MaxChunks, 10 << 20},
		"MaxNesting":    {MaxNesting, 64},
		"MaxHeader":     {MaxHeader, 16 << 20},
		"MaxPage":       {MaxPage, 512 << 20},
		"MaxPageValues": {MaxPageValues, 128 << 20},
		"MaxOpenPages":  {MaxOpenPages, 1 << 30},
		"maxPrefixed":   {maxPrefixed, 128 << 20},
		"maxWindow":     {maxWindow, 1 << 20},
	} {
		if c.is > c.most {
			t.Errorf("%s is %d, at most %d", name, c.is, c.most)
		}
	}
	b := Budget{Limit: 100}
	if b.take(60) != nil || b.take(41) == nil || b.take(40) != nil || b.take(-100) != nil || b.used != 0 {
		t.Errorf("a budget of 100: %+v", b)
	}
}

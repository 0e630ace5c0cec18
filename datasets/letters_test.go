package datasets

import "testing"

func TestShown(t *testing.T) {
	for _, c := range []struct{ text, shown, name string }{
		{"void f<int>(é, 世)", "void f<int>(é, 世)", "void f<int>(é, 世)"},
		{"a\x1b[31mb\nc\td", "a\\x1b[31mb\nc\td", "a\\x1b[31mb\\x0ac\\x09d"},
		{"a\u009bb\u202ec\u2066d\ufeff", `a\u009bb\u202ec\u2066d\ufeff`, `a\u009bb\u202ec\u2066d\ufeff`},
		{"a\xffb\x7f", `a\xffb\x7f`, `a\xffb\x7f`},
		{"", "", ""},
	} {
		if got := Shown(c.text); got != c.shown {
			t.Errorf("Shown(%q) = %q, want %q", c.text, got, c.shown)
		}
		if got := ShownName(c.text); got != c.name {
			t.Errorf("ShownName(%q) = %q, want %q", c.text, got, c.name)
		}
	}
}

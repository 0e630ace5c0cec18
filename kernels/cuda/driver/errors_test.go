//go:build cuda

package driver

import (
	"errors"
	"strings"
	"testing"

	"gorgonia.org/cu"
)

// Errors say what to do, in one line, also where there is no driver to name them.
func TestErrorsHaveRemedies(t *testing.T) {
	for code, want := range map[Error]string{OutOfMemory: "nvidia-smi", NoImage: "9.0 or newer", 214: "ECC",
		700: "compute-sanitizer", 719: "compute-sanitizer", 803: "driver's version", 999: "Xid"} {
		s := code.Error()
		if !strings.Contains(s, want) || strings.Contains(s, "\n") {
			t.Errorf("%d: %q does not say %q in one line", int(code), s, want)
		}
	}
	if err := Of(cu.OutOfMemory); err != OutOfMemory {
		t.Errorf("of package cu: %v", err)
	}
	if plain := errors.New("plain"); Of(plain) != plain || Of(nil) != nil {
		t.Error("other errors change")
	}
	if s := Error(1).Error(); strings.Contains(s, ";") {
		t.Errorf("%q has a remedy", s)
	}
}

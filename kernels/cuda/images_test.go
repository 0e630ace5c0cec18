package cuda

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The embedded images are those of the sources: make kernels after a change.
func TestImagesMatchSources(t *testing.T) {
	cu, _ := filepath.Glob("src/*.cu")
	cuh, _ := filepath.Glob("src/*.cuh")
	h := sha256.New()
	for _, f := range slices.Concat(cu, cuh) {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		h.Write(b)
	}
	want, err := os.ReadFile("images/SOURCES.sha256")
	if err != nil {
		t.Fatal(err)
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != strings.TrimSpace(string(want)) {
		t.Errorf("images are of sources %s, the sources are %s: run make kernels", strings.TrimSpace(string(want)), got)
	}
	for _, f := range cu {
		name := strings.TrimSuffix(filepath.Base(f), ".cu")
		if _, err := os.Stat("images/" + name + ".fatbin"); err != nil {
			t.Error(err)
		}
	}
}

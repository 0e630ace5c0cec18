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

// The images are those that the compiler wrote: each has its hash.
func TestImageHashes(t *testing.T) {
	b, err := os.ReadFile("images/SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for line := range strings.Lines(string(b)) {
		hash, name, ok := strings.Cut(strings.TrimSpace(line), "  ./")
		if !ok {
			t.Fatalf("SHA256SUMS: %q is not a hash and a name", line)
		}
		want[name] = hash
	}
	files, _ := filepath.Glob("images/*.fatbin")
	for _, f := range files {
		image, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		h, name := sha256.Sum256(image), filepath.Base(f)
		if got := hex.EncodeToString(h[:]); got != want[name] {
			t.Errorf("%s has hash %s, SHA256SUMS says %q: run make kernels", name, got, want[name])
		}
		delete(want, name)
	}
	for name := range want {
		t.Errorf("SHA256SUMS has %s, images has not", name)
	}
}

// What the images' disassembly has, by image and architecture: each product's
// matrix instruction.
func TestMatrixInstructions(t *testing.T) {
	b, err := os.ReadFile("images/INSTRUCTIONS.txt")
	if err != nil {
		t.Fatal(err)
	}
	sources, err := os.ReadFile("images/SOURCES.sha256")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(b), "\n")
	if lines[0] != strings.TrimSpace(string(sources)) {
		t.Errorf("INSTRUCTIONS.txt is of other images: run make kernels")
	}
	for _, want := range []string{
		"gemm sm_90a HMMA.16816.F32.BF16 ", "moe sm_90a HMMA.16816.F32.BF16 ", "moe sm_100a HMMA.16816.F32.BF16 ",
		"fp4mma sm_120a OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X ", "fp4tensor sm_100a UTCOMMA.4X ",
	} {
		if !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, want) }) {
			t.Errorf("no %s", want)
		}
	}
}

package cuda

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// manifest is images/MANIFEST.txt: of each image the lines that it has there.
func manifest(t *testing.T) map[string][]string {
	t.Helper()
	b, err := os.ReadFile("images/MANIFEST.txt")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for part := range strings.SplitSeq(strings.TrimSpace(string(b)), "\n\n") {
		lines := strings.Split(part, "\n")
		for i := range lines {
			lines[i] = strings.TrimSpace(lines[i])
		}
		if all[lines[0]] != nil {
			t.Errorf("MANIFEST.txt has %s twice", lines[0])
		}
		all[lines[0]] = lines
	}
	return all
}

// TestManifest: each source has its image, compiled from what the source is now, as
// the compiler wrote it.
func TestManifest(t *testing.T) {
	noted := manifest(t)
	for name, source := range sources(t) {
		image, err := os.ReadFile("images/" + name + ".fatbin")
		if err != nil {
			t.Errorf("%v: run make kernels", err)
			continue
		}
		want := []string{name, "sources " + madeOf(t, source), fmt.Sprintf("image %x", sha256.Sum256(image))}
		if has := noted[name]; len(has) < len(want) || !slices.Equal(has[:len(want)], want) {
			t.Errorf("MANIFEST.txt has %q, %s is %q: run make kernels", has, source, want)
		}
		delete(noted, name)
	}
	for name := range noted {
		t.Errorf("MANIFEST.txt has %s, which no source is of: run make kernels", name)
	}
}

// sources are the kernels' source files, by the names of their images.
func sources(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	if err := filepath.WalkDir("src", func(path string, _ fs.DirEntry, err error) error {
		if name, ok := strings.CutSuffix(filepath.Base(path), ".cu"); ok {
			if all[name] != "" {
				t.Errorf("%s and %s are one image", all[name], path)
			}
			all[name] = path
		}
		return err
	}); err != nil || len(all) == 0 {
		t.Fatalf("%d sources, %v", len(all), err)
	}
	return all
}

var included = regexp.MustCompile(`(?m)^#include "(.*)"`)

// madeOf is the hash that build.sh notes: that of the lines that sha256sum prints for
// nvcc.options, toolchain.txt, the source and what it includes, in order.
func madeOf(t *testing.T, source string) string {
	t.Helper()
	files, hashes := []string{source}, map[string]string{}
	for i := 0; i < len(files); i++ {
		b, err := os.ReadFile(files[i])
		if err != nil {
			t.Fatal(err)
		}
		hashes[files[i]] = fmt.Sprintf("%x  %s\n", sha256.Sum256(b), files[i])
		for _, m := range included.FindAllSubmatch(b, -1) {
			if name := "src/" + string(m[1]); !slices.Contains(files, name) {
				files = append(files, name)
			}
		}
	}
	slices.Sort(files)
	all := sha256.New()
	for _, name := range []string{"nvcc.options", "toolchain.txt"} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(all, "%x  %s\n", sha256.Sum256(b), name)
	}
	for _, name := range files {
		all.Write([]byte(hashes[name]))
	}
	return hex.EncodeToString(all.Sum(nil))
}

// TestDocHasSources: doc.go's list of kernels has every source.
func TestDocHasSources(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for name := range sources(t) {
		if !regexp.MustCompile(`\b` + name + `\.cu\b`).Match(doc) {
			t.Errorf("doc.go does not say what %s.cu is for", name)
		}
	}
}

// What the images' disassembly has, by image and architecture: each product's
// matrix instruction.
func TestMatrixInstructions(t *testing.T) {
	noted := manifest(t)
	for _, c := range [][2]string{
		{"gemm", "sm_90a HMMA.16816.F32.BF16 "}, {"moe", "sm_90a HMMA.16816.F32.BF16 "},
		{"moe", "sm_100a HMMA.16816.F32.BF16 "},
		{"sm120_w4a4", "sm_120a OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X "}, {"sm100_w4a4", "sm_100a UTCOMMA.4X "},
	} {
		if !slices.ContainsFunc(noted[c[0]], func(l string) bool { return strings.HasPrefix(l, c[1]) }) {
			t.Errorf("%s has no %s", c[0], c[1])
		}
	}
}

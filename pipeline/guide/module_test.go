package guide

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
)

// The module that is committed is what was built of the sources that are.
func TestModule(t *testing.T) {
	code, err := unpack()
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile("wasm/SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for line := range strings.Lines(string(sums)) {
		want, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		data := code
		if name != "module.wasm" {
			if data, err = os.ReadFile(filepath.Join("wasm", name)); err != nil {
				t.Fatal(err)
			}
		}
		if have := sha256.Sum256(data); hex.EncodeToString(have[:]) != want {
			t.Errorf("%s is not what the module was built with: make guide", name)
		}
		seen++
	}
	if seen != 6 {
		t.Errorf("%d files have sums, want 6", seen)
	}
	r := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfigInterpreter())
	defer r.Close(t.Context())
	m, err := r.CompileModule(t.Context(), code)
	if err != nil {
		t.Fatal(err)
	}
	var imports []string
	for _, f := range m.ImportedFunctions() {
		from, name, _ := f.Import()
		imports = append(imports, from+"."+name)
	}
	if !slices.Equal(imports, []string{"env.now"}) || len(m.ImportedMemories()) > 0 {
		t.Errorf("the module imports %v: it must not reach anything", imports)
	}
	for _, name := range functions {
		if m.ExportedFunctions()[name] == nil {
			t.Errorf("the module has no function %s", name)
		}
	}
	if i := bytes.Index(code, []byte("/registry/src")); i >= 0 && !bytes.Contains(code[max(0, i-8):i],
		[]byte("cargo")) {
		t.Errorf("the module has a path of the machine that built it: %q", code[max(0, i-40):i])
	}
}

// Every crate that the module may have in it is in the list of licences.
func TestLicences(t *testing.T) {
	lock, err := os.ReadFile("wasm/Cargo.lock")
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile("wasm/LICENCES.txt")
	if err != nil {
		t.Fatal(err)
	}
	crates := regexp.MustCompile(`(?m)^name = "(.*)"\nversion = "(.*)"$`).FindAllStringSubmatch(string(lock), -1)
	if len(crates) < 10 {
		t.Fatalf("%d crates", len(crates))
	}
	for _, c := range crates {
		if c[1] != "guide" && !strings.Contains(string(list), "\n== "+c[1]+" "+c[2]+" (") {
			t.Errorf("LICENCES.txt lacks %s %s: make guide", c[1], c[2])
		}
	}
	s := bufio.NewScanner(bytes.NewReader(list))
	for s.Scan() {
		name, licence, ok := strings.Cut(s.Text(), " (")
		if strings.HasPrefix(name, "== ") && ok && !regexp.MustCompile(`MIT|Zlib|BSD-3-Clause`).MatchString(licence) {
			t.Errorf("%s: is %s a licence that can be taken?", name, licence)
		}
	}
}

//go:build cuda

package cupti

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// What is not there is said, with what to do.
func TestLoadWithoutLibrary(t *testing.T) {
	if _, err := Load(filepath.Join(t.TempDir(), "libcupti.so.13")); err == nil ||
		!strings.Contains(err.Error(), "libcupti.so.13") {
		t.Errorf("error is %v", err)
	}
	if _, err := Load(""); err != nil && !strings.Contains(err.Error(), "install the CUDA toolkit's CUPTI") {
		t.Errorf("error is %v", err)
	}
}

// The record is the start of that of CUPTI's headers, where a toolkit has them:
// the compiler compares.
func TestRecordIsThatOfTheHeaders(t *testing.T) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip(err)
	}
	home := cmp.Or(os.Getenv("CUDA_HOME"), "/usr/local/cuda")
	var args []string
	var header []byte
	for _, dir := range []string{"extras/CUPTI/include", "include"} {
		dir = filepath.Join(home, dir)
		args = append(args, "-I"+dir)
		if text, err := os.ReadFile(filepath.Join(dir, "cupti_activity.h")); err == nil && header == nil {
			header = text
		}
	}
	if header == nil {
		t.Skipf("no cupti_activity.h in %s", home)
	}
	names := regexp.MustCompile(`} CUpti_ActivityKernel(\d+);`).FindAllSubmatch(header, -1)
	if len(names) == 0 {
		t.Fatal("the header has no kernel record")
	}
	newest := string(slices.MaxFunc(names, func(a, b [][]byte) int {
		x, _ := strconv.Atoi(string(a[1]))
		y, _ := strconv.Atoi(string(b[1]))
		return cmp.Compare(x, y)
	})[1])
	source := filepath.Join(t.TempDir(), "layout.c")
	text := `#include <stddef.h>
#include <cuda.h>
#include <cupti_result.h>
#include <cupti_common.h>
#include <cupti_activity.h>
#include "record.h"
`
	for _, field := range []string{"kind", "start", "end", "deviceId", "streamId", "name", "graphNodeId"} {
		text += "_Static_assert(offsetof(struct record, " + field + ") == offsetof(CUpti_ActivityKernel" +
			newest + ", " +
			field + "), \"" + field + "\");\n"
	}
	text += "_Static_assert(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL == concurrent_kernel, \"kind\");\n"
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	args = append(args, "-w", "-I.", "-fsyntax-only", source)
	if out, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
		t.Errorf("CUpti_ActivityKernel%s: %v: %s", newest, err, out)
	}
}

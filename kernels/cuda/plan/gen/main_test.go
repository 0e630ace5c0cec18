package main

import (
	"bytes"
	"os"
	"os/exec"
	"testing"
)

// TestParams: plan/params.go is of the headers as they are.
func TestParams(t *testing.T) {
	if _, err := exec.LookPath("cc"); err != nil && os.Getenv("CC") == "" {
		t.Skip("there is no C compiler")
	}
	want, err := params("../../src")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile("../params.go"); err != nil || !bytes.Equal(got, want) {
		t.Errorf("params.go is of other headers, %v: run go generate ./kernels/cuda/plan", err)
	}
}

// TestLayout: what Go would lay out otherwise, or has no type for, is refused.
func TestLayout(t *testing.T) {
	if _, err := exec.LookPath("cc"); err != nil && os.Getenv("CC") == "" {
		t.Skip("there is no C compiler")
	}
	for source, want := range map[string]bool{
		"typedef struct A { const float* x; int n; union { char c; double d; } u[2]; } A; " +
			"enum { kTwo = 1 << 1 };": true,
		"typedef struct A { int n; int m __attribute__((aligned(16))); } A;": false,
		"typedef struct A { char c; int n; } __attribute__((packed)) A;":     false,
		"typedef struct A { void (*f)(void); _Complex double z; } A;":        false,
	} {
		data, err := compile([]byte(source), ".")
		if err != nil {
			t.Fatal(err)
		}
		text, err := write(data)
		if (err == nil) != want {
			t.Errorf("%s: %v\n%s", source, err, text)
		}
		if want && !bytes.Contains(text, []byte("type a struct {\n\tx uintptr\n\tn int32\n\tu [2][1]uint64\n}")) {
			t.Errorf("%s: is\n%s", source, text)
		}
	}
}

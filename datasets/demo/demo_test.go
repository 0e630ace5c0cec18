package demo_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"testing"

	"glmbatch/datasets"
	"glmbatch/datasets/demo"
)

func TestPrompts(t *testing.T) {
	in, err := datasets.OpenBytes("demo prompts", demo.Prompts())
	if err != nil {
		t.Fatal(err)
	}
	if in.Rows != 1000 || in.ColumnNames() != "id, task, system, prompt, expected" {
		t.Fatalf("%d rows of %s", in.Rows, in.ColumnNames())
	}
	prompt, _ := in.Lookup("prompt")
	expected, _ := in.Lookup("expected")
	tasks, _ := in.Lookup("task")
	seen := map[string]int{}
	r := in.Reader(0, in.Rows)
	defer r.Close()
	for {
		recs, err := r.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, rec := range recs {
			for _, f := range []datasets.Field{prompt, expected} {
				if s, ok, err := f.Text(rec); !ok || err != nil || len(s) == 0 {
					t.Errorf("row %d has no %s", rec.Index, f.Name)
				}
			}
			task, _, _ := tasks.Text(rec)
			seen[string(task)]++
		}
	}
	if len(seen) != 14 {
		t.Errorf("%d tasks, want all 14: %v", len(seen), seen)
	}
}

func TestFiles(t *testing.T) {
	for name, data := range demo.Files() {
		if len(data) == 0 {
			t.Errorf("%s is empty", name)
		}
		if len(name) > 5 && name[len(name)-5:] == ".json" && !json.Valid(data) {
			t.Errorf("%s is not JSON", name)
		}
	}
	const sum = "12d1a314da29b354b783a6ce3be1efec20b526de1b628a50902b5e42b196cec0"
	if got := fmt.Sprintf("%x", sha256.Sum256(demo.Files()["model.safetensors"])); got != sum {
		t.Errorf("the weights' SHA-256 is %s, that of the trained ones %s", got, sum)
	}
}

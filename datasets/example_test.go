package datasets_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"glmbatch/datasets"
)

// A row is a struct, and its tags are the file's schema.
func ExampleWriter() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "steps.parquet")
	w, err := datasets.Create[datasets.Step](path, map[string]string{"from": "an example"})
	if err != nil {
		log.Fatal(err)
	}
	if err := w.Write([]datasets.Step{{Step: 0, Kind: "prefill", Tokens: 512},
		{Step: 1, Kind: "decode", Tokens: 8}}); err != nil {
		log.Fatal(err)
	}
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}
	err = datasets.Read(path, func(rows []datasets.Step) error {
		for _, r := range rows {
			fmt.Println(r.Step, r.Kind, r.Tokens)
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// 0 prefill 512
	// 1 decode 8
}

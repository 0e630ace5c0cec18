package quantize_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"glmbatch/engine/checkpoint"
	"glmbatch/engine/quantize"
	"glmbatch/engine/synth"
)

// A checkpoint of random BF16 weights, then its NVFP4 form.
func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	members, config, err := (&synth.Options{Config: "tiny", Layers: 4}).Resolve()
	if err != nil {
		log.Fatal(err)
	}
	s := synth.New(&config, 1, "bf16")
	w, err := checkpoint.NewWriter(filepath.Join(dir, "bf16"), s.Entries, 1<<30)
	if err != nil {
		log.Fatal(err)
	}
	if err := s.Write(ctx, w); err != nil {
		log.Fatal(err)
	}
	if err := s.WriteConfig(w, members); err != nil {
		log.Fatal(err)
	}
	if err := w.Commit(); err != nil {
		log.Fatal(err)
	}
	ck, err := checkpoint.Open(filepath.Join(dir, "bf16"))
	if err != nil {
		log.Fatal(err)
	}
	defer ck.Close()
	q, err := quantize.New(ck, &config, []string{"*shared_experts*"}, 0)
	if err != nil {
		log.Fatal(err)
	}
	if w, err = checkpoint.NewWriter(filepath.Join(dir, "nvfp4"), q.Entries, 1<<30); err != nil {
		log.Fatal(err)
	}
	if err := q.Write(ctx, w); err != nil {
		log.Fatal(err)
	}
	if err := q.WriteConfig(w); err != nil {
		log.Fatal(err)
	}
	if err := w.Commit(); err != nil {
		log.Fatal(err)
	}
	fmt.Println(q.Count, "of", q.Total, "weights are NVFP4")
	// Output:
	// 153 of 221 weights are NVFP4
}

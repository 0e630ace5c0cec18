//go:build ignore

// Command pack packs the module of guides, for build.sh: go run pack.go FROM TO.
package main

import (
	"fmt"
	"os"

	"github.com/klauspost/compress/zstd"
)

func main() {
	data, err := os.ReadFile(os.Args[1])
	if err == nil {
		var w *zstd.Encoder
		if w, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression),
			zstd.WithEncoderConcurrency(1)); err == nil {
			err = os.WriteFile(os.Args[2], w.EncodeAll(data, nil), 0o644)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

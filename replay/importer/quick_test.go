package importer

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"glmbatch/datasets"
)

func TestQuick(t *testing.T) {
	for _, p := range []string{"/work/shared/traces/h200/*.gz", "/work/shared/traces/public/torch*.gz"} {
		fs, _ := filepath.Glob(p)
		for _, f := range fs {
			stepSpan := map[int64][2]int64{}
			kv := map[int64]int64{}
			lay := map[int32]int{}
			s, err := Torch([]string{f}, Options{}, func(rows []datasets.Span) error {
				for _, r := range rows {
					if r.Class != "host" {
						x, ok := stepSpan[r.Step]
						if !ok {
							x = [2]int64{r.StartNS, r.EndNS}
						}
						x[0], x[1] = min(x[0], r.StartNS), max(x[1], r.EndNS)
						stepSpan[r.Step] = x
						lay[r.Layer]++
						if r.Class == "kv.cast" {
							kv[r.Step] += r.EndNS - r.StartNS
						}
					}
				}
				return nil
			})
			fmt.Fprintln(os.Stderr, filepath.Base(f), err)
			if err != nil {
				continue
			}
			for _, r := range s.Ranks {
				fmt.Fprintf(os.Stderr, "  %+v\n", r)
			}
			fmt.Fprintln(os.Stderr, "  rows", s.Rows, "steps", s.Steps, "cov", s.Covered(), "layers", lay)
			for st, x := range stepSpan {
				fmt.Fprintln(os.Stderr, "   step", st, x[1]-x[0], float64(kv[st])/float64(x[1]-x[0]))
			}
			for _, c := range s.Classes[:min(5, len(s.Classes))] {
				fmt.Fprintln(os.Stderr, "   ", c)
			}
			for _, c := range s.Findings {
				fmt.Fprintln(os.Stderr, "   !", c)
			}
			s.Stubs(os.Stderr)
		}
	}
}

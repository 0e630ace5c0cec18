package pipeline

import (
	"fmt"
	"os"
	"path/filepath"

	"glmbatch/datasets"
	"glmbatch/replay/timeline"
)

// thin takes the steps out of a complete job's timeline that were recorded while the
// job was shorter than it came to be: what is left is spread evenly over it. A file at
// a time is written anew, so that the timeline is one at every moment.
func (r *Recorder) thin() error {
	if !r.policy.Sample || !r.sampled.Dropped() {
		return nil
	}
	names, err := parts(r.timeline.Dir)
	if err != nil {
		return err
	}
	kept := map[int64]bool{}
	for _, name := range names {
		if err := r.thinFile(filepath.Join(r.timeline.Dir, name), kept); err != nil {
			return err
		}
	}
	return nil
}

// thinFile writes a file without the steps that are not kept. kept says of the steps of
// this file and of those before it which are; rows of no step stay.
func (r *Recorder) thinFile(path string, kept map[int64]bool) (err error) {
	w, err := datasets.Create[datasets.Span](path, nil)
	if err != nil {
		return err
	}
	var rest []datasets.Span
	dropped := false
	err = datasets.Read(path, func(rows []datasets.Span) error {
		rest = rest[:0]
		for i := range rows {
			s := &rows[i]
			if s.Evidence == timeline.RoleStep { // the first row of each step
				kept[s.Step] = r.sampled.Keeps(s.Step, s.Kernel)
			}
			if s.Step < 0 || kept[s.Step] {
				rest = append(rest, *s)
			} else {
				dropped = true
			}
		}
		return w.Write(rest)
	})
	if err != nil {
		w.Abort()
		return fmt.Errorf("thinning the timeline: %w", err)
	}
	if !dropped {
		w.Abort()
		return nil
	}
	if w.Rows() == 0 {
		w.Abort()
		return os.Remove(path)
	}
	return w.Close()
}

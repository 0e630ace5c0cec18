package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"glmbatch/datasets"
	"glmbatch/stores"
)

// resultsOf takes the folder of a job for the job's output rows: steps and timeline are
// no prompts.
func resultsOf(args []string) []string {
	args = slices.Clone(args)
	for i, arg := range args {
		if stores.IsURL(arg) {
			if ok, err := stores.Exists(context.Background(), stores.Join(arg, datasets.ManifestFile)); err == nil &&
				ok && !strings.ContainsAny(arg, "*[") {
				args[i] = stores.Join(arg, datasets.OutputsDir)
			}
			continue
		}
		outputs := filepath.Join(arg, datasets.OutputsDir)
		manifest, err := os.Stat(filepath.Join(arg, datasets.ManifestFile))
		rows, err2 := os.Stat(outputs)
		if err == nil && err2 == nil && manifest.Mode().IsRegular() && rows.IsDir() {
			args[i] = outputs
		}
	}
	return args
}

// withoutOwn leaves out of the input what the job itself writes: an output
// folder may lie in a folder of prompts, and be there when the job is run again.
// A path that was named and would be written over is an error, before anything
// is removed.
func (r *runFlags) withoutOwn(args, paths []string) ([]string, error) {
	if r.out == "" {
		return paths, nil
	}
	out := realPath(r.out)
	own := func(path string) bool {
		if stores.IsURL(path) || stores.IsURL(r.out) {
			return belowURL(path, r.out)
		}
		rel, err := filepath.Rel(out, realPath(path))
		first, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
		return err == nil && slices.Contains(jobFolders, first)
	}
	for _, arg := range args {
		if own(arg) {
			return nil, fmt.Errorf("%s is part of --out %s, which this run would write: choose another --out", arg,
				r.out)
		}
	}
	left := slices.DeleteFunc(slices.Clone(paths), own)
	if len(left) == 0 {
		return nil, fmt.Errorf("all input files are part of --out %s, which this run would write: choose another --out",
			r.out)
	}
	return left, nil
}

// jobFolders are the folders in an output folder.
var jobFolders = []string{datasets.ShardsDir, datasets.OutputsDir, datasets.StepsDir, datasets.TimelineDir,
	datasets.CapturesDir, datasets.JournalDir}

// belowURL reports whether a URL is one of what a job with this output writes.
func belowURL(path, out string) bool {
	path, _, _ = strings.Cut(path, "?")
	out, _, _ = strings.Cut(out, "?")
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(out, "/")+"/")
	first, _, _ := strings.Cut(rest, "/")
	return ok && slices.Contains(jobFolders, first)
}

// realPath is a path without links, as far as it exists.
func realPath(path string) string {
	path, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	dir, name := filepath.Split(path)
	if name == "" || dir == path {
		return path
	}
	return filepath.Join(realPath(dir), name)
}

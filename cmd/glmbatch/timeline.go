package main

import (
	"os"
	"path/filepath"
	"strings"

	"glmbatch/datasets"
	"glmbatch/replay"
)

// timelineOf returns where the timeline is that an argument names: an output folder or
// a timeline file is one. The steps of a captured step's file, or of a folder of such
// files, are written to a file as they were recorded, which done removes.
func timelineOf(path string) (place string, done func(), err error) {
	done = func() {}
	files := capturesIn(path)
	if len(files) == 0 {
		return path, done, nil
	}
	dir, err := os.MkdirTemp("", "glmbatch-captured-")
	if err != nil {
		return "", done, err
	}
	place = filepath.Join(dir, "timeline.parquet")
	if err := replay.WriteTimeline(place, files); err != nil {
		os.RemoveAll(dir)
		return "", done, err
	}
	return place, func() { os.RemoveAll(dir) }, nil
}

// capturesIn are the captured steps that a path names: itself, or the files of a folder
// that has nothing else.
func capturesIn(path string) []string {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil
	case !info.IsDir():
		if datasets.IsCapture(path) {
			return []string{path}
		}
		return nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil
	}
	var files []string
	for _, e := range entries {
		name := filepath.Join(path, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), "."): // unfinished
		case !datasets.IsCapture(name):
			return nil
		default:
			files = append(files, name)
		}
	}
	return files
}

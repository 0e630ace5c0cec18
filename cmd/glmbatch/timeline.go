package main

import (
	"os"
	"path/filepath"
	"strings"

	"glmbatch/datasets"
	"glmbatch/replay"
	"glmbatch/replay/report"
)

// timelineOf returns the timeline that an argument names: an output folder or a
// timeline file is one, and so are the steps of a captured step's file, or of a folder
// of such files, as they were recorded.
func timelineOf(path string) (s report.Source, err error) {
	s.Path = path
	if files := capturesIn(path); len(files) > 0 {
		s.Rows, err = replay.Timeline(files)
	}
	return s, err
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

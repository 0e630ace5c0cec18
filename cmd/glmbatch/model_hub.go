package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"glmbatch/engine/checkpoint"
)

// hubName is how Hugging Face's hub names a model.
var hubName = regexp.MustCompile(`^[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*$`)

// hubFolder returns the folder of a model in Hugging Face's local cache where name is
// one of the hub's, OWNER/NAME, and no folder here; else name. Nothing is downloaded.
func hubFolder(name string) (string, error) {
	if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) || !hubName.MatchString(name) {
		return name, nil
	}
	cache := hubCache()
	dir := filepath.Join(cache, "models--"+strings.ReplaceAll(name, "/", "--"))
	if _, err := os.Stat(dir); err != nil {
		return "",
			fmt.Errorf("opening checkpoint: there is no folder %s, and no model of that name in Hugging Face's cache "+
				"(%s): download it first ('hf download %s'), or give a folder: %w", name, cache, name, fs.ErrNotExist)
	}
	return dir, nil
}

// textFolder returns where the tokenizer of a model is: a folder, demo, or a name as
// hubFolder has it.
func textFolder(model string) (string, error) {
	if isDemo(model) {
		return model, nil
	}
	dir, err := hubFolder(model)
	if err != nil {
		return "", err
	}
	return checkpoint.Snapshot(dir)
}

// hubCache is where Hugging Face's client keeps models.
func hubCache() string {
	if dir := os.Getenv("HF_HUB_CACHE"); dir != "" {
		return dir
	}
	if home := os.Getenv("HF_HOME"); home != "" {
		return filepath.Join(home, "hub")
	}
	cache := os.Getenv("XDG_CACHE_HOME")
	if home, err := os.UserHomeDir(); cache == "" && err == nil {
		cache = filepath.Join(home, ".cache")
	}
	return filepath.Join(cache, "huggingface", "hub")
}

package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// index says which file has which tensor.
type index struct {
	files  []string          // sorted
	fileOf map[string]string // nil: there is one file, it has them all
}

const maxFiles = 10_000

// readIndex reads model.safetensors.index.json; without it there is one file.
func readIndex(src source) (index, error) {
	b, err := src.small(IndexFile)
	if errors.Is(err, fs.ErrNotExist) {
		f, err := src.open(WeightsFile)
		if errors.Is(err, fs.ErrNotExist) {
			return index{}, fmt.Errorf("neither %s nor %s is there: glmbatch reads safetensors; download or convert the weights: %w", IndexFile, WeightsFile, fs.ErrNotExist)
		}
		if err != nil {
			return index{}, err
		}
		return index{files: []string{WeightsFile}}, f.close()
	}
	if err != nil {
		return index{}, err
	}
	x, err := parseIndex(b)
	if err != nil {
		return index{}, fmt.Errorf("%s: %w", IndexFile, err)
	}
	return x, nil
}

// parseIndex accepts names of files in the folder itself only.
func parseIndex(b []byte) (index, error) {
	var doc struct {
		WeightMap map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		return index{}, fmt.Errorf("damaged: %w", err)
	}
	if len(doc.WeightMap) == 0 {
		return index{}, errors.New("weight_map is missing or empty")
	}
	x := index{fileOf: doc.WeightMap}
	seen := map[string]bool{}
	for tensor, name := range doc.WeightMap {
		if seen[name] {
			continue
		}
		seen[name] = true
		if !filepath.IsLocal(name) || strings.ContainsAny(name, "/\\\x00") || !strings.HasSuffix(name, ".safetensors") {
			return index{}, fmt.Errorf("%s is placed in %q, which is not a .safetensors file of this folder", tensor, name)
		}
		x.files = append(x.files, name)
	}
	if len(x.files) > maxFiles {
		return index{}, fmt.Errorf("%d files, at most %d are supported", len(x.files), maxFiles)
	}
	slices.Sort(x.files)
	return x, nil
}

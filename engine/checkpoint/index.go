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

// wanted reports whether a file has a tensor that is needed.
func (x *index) wanted(file string, needs func(tensor string) bool) bool {
	if x.fileOf == nil {
		return true
	}
	for tensor, f := range x.fileOf {
		if f == file && needs(tensor) {
			return true
		}
	}
	return false
}

const maxFiles = 10_000

// readIndex reads model.safetensors.index.json; without it the folder is looked
// through. missing are files that the names of others tell of.
func readIndex(src source) (x index, missing []string, err error) {
	b, err := src.small(IndexFile)
	if errors.Is(err, fs.ErrNotExist) {
		names := src.list()
		x.files, missing = unlisted(names)
		if len(x.files) == 0 {
			return x, nil, noWeights(names)
		}
		return x, missing, nil
	}
	if err != nil {
		return x, nil, err
	}
	if what := foreign(b[:min(len(b), sniffed)]); what != "" {
		return x, nil, fmt.Errorf("%s is %s", IndexFile, what)
	}
	if x, err = parseIndex(b); err != nil {
		return x, nil, fmt.Errorf("%s: %w", IndexFile, err)
	}
	return x, nil, nil
}

// noWeights says what a folder has in their place.
func noWeights(names []string) error {
	what := "download or convert the weights"
	for _, n := range names {
		switch strings.ToLower(filepath.Ext(n)) {
		case ".gguf":
			what = fmt.Sprintf("%q is GGUF; %s", n, needSafetensors)
		case ".bin", ".pt", ".pth":
			what = fmt.Sprintf("%q is a PyTorch file; save it with safe_serialization, or download the safetensors", n)
		}
	}
	if n := unfinished(names); n != "" {
		what = fmt.Sprintf("a download is unfinished (%q): let it end", n)
	}
	return fmt.Errorf("neither %s nor %s is there: glmbatch reads safetensors; %s: %w", IndexFile, WeightsFile, what,
		fs.ErrNotExist)
}

// parseIndex accepts names of files in the folder itself only.
func parseIndex(b []byte) (index, error) {
	var doc struct {
		WeightMap map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		return index{}, fmt.Errorf("damaged: %w", plainJSON(err))
	}
	if len(doc.WeightMap) == 0 {
		return index{}, errors.New("weight_map is missing or empty")
	}
	x := index{fileOf: doc.WeightMap}
	seen := map[string]bool{}
	for tensor, name := range doc.WeightMap {
		if err := checkName(tensor); err != nil {
			return index{}, err
		}
		if seen[name] {
			continue
		}
		seen[name] = true
		if !filepath.IsLocal(name) || strings.ContainsAny(name, "/\\\x00") || !strings.HasSuffix(name, ".safetensors") {
			return index{}, fmt.Errorf("%s is placed in %q, which is not a .safetensors file of this folder", tensor,
				name)
		}
		x.files = append(x.files, name)
	}
	if len(x.files) > maxFiles {
		return index{}, fmt.Errorf("%d files, at most %d are supported", len(x.files), maxFiles)
	}
	slices.Sort(x.files)
	return x, nil
}

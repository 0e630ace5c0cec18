package checkpoint

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"glmbatch/units"
)

const maxSideFile = 512 << 20 // of a tokenizer or a template

// CopySide copies what lies beside the weights: tokenizer, template,
// generation settings, licence. only, if not nil, are the names wanted.
func CopySide(w *Writer, dir string, only []string) (copied []string, err error) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range list {
		name := e.Name()
		switch ext := filepath.Ext(name); {
		case strings.HasPrefix(name, "."):
			continue
		case name == ConfigFile, name == QuantFile, strings.HasSuffix(name, ".index.json"):
			continue
		case ext == ".safetensors" || ext == ".bin" || ext == ".pt" || ext == ".gguf":
			continue
		case only != nil && !slices.Contains(only, name):
			continue
		}
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() {
			continue
		}
		b, err := ReadSide(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		if err := w.WriteFile(name, b); err != nil {
			return nil, err
		}
		copied = append(copied, name)
	}
	return copied, nil
}

// ReadSide reads a file that stands beside a checkpoint's weights. What is no
// file is refused unopened: to open a pipe is to wait for a writer.
func ReadSide(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a file", path)
	case info.Size() > maxSideFile:
		return nil, fmt.Errorf("%s has %s: no file beside the weights is that large; move it away", path,
			units.Bytes(info.Size()))
	}
	return os.ReadFile(path)
}

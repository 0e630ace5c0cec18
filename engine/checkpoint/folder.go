package checkpoint

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// What a folder or a file is that is no checkpoint, said in the words of whoever
// downloaded it.

const sniffed = 1024 // bytes of a file's beginning

// foreign says what a file is that should be safetensors or JSON; "": unknown.
func foreign(start []byte) string {
	text := bytes.ToLower(bytes.TrimLeft(start, "\ufeff \t\r\n"))
	switch {
	case bytes.HasPrefix(text, []byte("version https://git-lfs")):
		return "a Git LFS pointer, not the file itself: run 'git lfs pull' in the folder"
	case bytes.HasPrefix(text, []byte("<!doctype")), bytes.HasPrefix(text, []byte("<html")), bytes.HasPrefix(text,
		[]byte("<?xml")):
		return "a web page, not the file itself (a log-in or an error page was saved in its place): download it again"
	case bytes.HasPrefix(start, []byte("GGUF")):
		return "GGUF, not safetensors: " + needSafetensors
	case bytes.HasPrefix(start, []byte("PK\x03\x04")), bytes.HasPrefix(start, []byte("\x80\x02")):
		return "a PyTorch file, not safetensors: " + needSafetensors
	}
	return ""
}

const needSafetensors = "glmbatch reads folders of config.json and safetensors, as the model's own release has them"

// absent says what a folder without config.json is.
func absent(names []string) string {
	var weights, others faults
	for _, n := range names {
		ext := strings.ToLower(filepath.Ext(n))
		switch {
		case ext == ".gguf":
			return fmt.Sprintf("it has no %s, but %q, which is GGUF: %s", ConfigFile, n, needSafetensors)
		case n == "adapter_config.json" || strings.HasPrefix(n, "adapter_model."):
			return "it is a LoRA adapter, not a model: merge it into its base model first"
		case ext == ".safetensors":
			weights.add("%q", n)
		case ext == ".bin" || ext == ".pt" || ext == ".pth":
			others.add("%q", n)
		}
	}
	switch {
	case weights.n > 0:
		return fmt.Sprintf("it has weights (%s) but no %s: copy that from the model's page", weights.String(),
			ConfigFile)
	case others.n > 0:
		return fmt.Sprintf("it has no %s, but %s: %s", ConfigFile, others.String(), needSafetensors)
	}
	return fmt.Sprintf("it has no %s: %s", ConfigFile, needSafetensors)
}

// shardName is that of one of several files: its number and how many there are.
var shardName = regexp.MustCompile(`^(.*)-(\d{5})-of-(\d{5})\.safetensors$`)

// unlisted finds the weight files of a folder without an index, which needs none: the
// files' headers say what they have. missing are those that the names tell of.
func unlisted(names []string) (files, missing []string) {
	for _, n := range names {
		if strings.HasSuffix(n, ".safetensors") && !strings.HasPrefix(n, ".") {
			files = append(files, n)
		}
	}
	if slices.Contains(files, WeightsFile) {
		return []string{WeightsFile}, nil
	}
	for _, n := range files {
		m := shardName.FindStringSubmatch(n)
		if m == nil {
			continue
		}
		total, _ := strconv.Atoi(m[3]) // five digits
		for i := 1; i <= min(total, maxFiles); i++ {
			other := fmt.Sprintf("%s-%05d-of-%s.safetensors", m[1], i, m[3])
			if !slices.Contains(names, other) && !slices.Contains(missing, other) {
				missing = append(missing, other)
			}
		}
		break
	}
	return files, missing
}

// unfinished names what a download has left half done, in a folder of names.
func unfinished(names []string) string {
	for _, n := range names {
		switch filepath.Ext(n) {
		case ".incomplete", ".part", ".aria2", ".crdownload", ".download":
			return n
		}
	}
	return ""
}

// list returns the names in a folder, and of what Hugging Face's client has not
// finished there.
func list(dir string) []string {
	var names []string
	for _, sub := range []string{"", ".cache/huggingface/download"} {
		entries, err := os.ReadDir(filepath.Join(dir, sub))
		if err != nil {
			continue
		}
		for _, e := range entries[:min(len(entries), maxFiles)] {
			names = append(names, filepath.Join(sub, e.Name()))
		}
	}
	return names
}

// notFolder says why a path cannot be opened as one.
func notFolder(path string, err error) error {
	if err != nil {
		return fmt.Errorf("opening checkpoint: %w", err)
	}
	if f, err := openRegular(path); err == nil {
		defer f.Close()
		start := make([]byte, sniffed)
		n, _ := f.Read(start)
		if what := foreign(start[:n]); what != "" {
			return fmt.Errorf("opening checkpoint: %s is %s", path, what)
		}
	}
	return fmt.Errorf("opening checkpoint: %s is a file; give the folder that has %s", path, ConfigFile)
}

// Snapshot returns the folder of a model in Hugging Face's cache, whose folders are
// named models--OWNER--NAME, and dir for any other.
func Snapshot(dir string) (string, error) {
	base := filepath.Join(dir, "snapshots")
	if !strings.HasPrefix(filepath.Base(dir), "models--") {
		return dir, nil
	}
	if ref, err := readSmall(filepath.Join(dir, "refs", "main"), 256); err == nil {
		if at := filepath.Join(base, filepath.Base(strings.TrimSpace(string(ref)))); isFolder(at) {
			return at, nil
		}
	}
	entries, err := os.ReadDir(base)
	if err != nil || len(entries) == 0 {
		what := "no snapshot is there"
		if blobs, err := os.ReadDir(filepath.Join(dir, "blobs")); err == nil && len(blobs) > 0 {
			what = "only parts of a download are there"
		}
		return "", fmt.Errorf("opening checkpoint: %s is a model's folder in Hugging Face's cache, and %s: download "+
			"it first: %w", dir, what, fs.ErrNotExist)
	}
	if len(entries) > 1 {
		return "", fmt.Errorf("opening checkpoint: %s has %d snapshots and no refs/main: give one of the folders in it",
			dir, len(entries))
	}
	return filepath.Join(base, entries[0].Name()), nil
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

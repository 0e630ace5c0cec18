package record

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// traces watches a folder for traces that were not there before.
type traces struct {
	dir    string
	before map[string]fileState
	whole  map[string]fileState // those that were read to their end
	last   map[string]fileState
}

type fileState struct {
	size int64
	time time.Time
}

// maxFiles bounds the files of a folder that are looked at.
const maxFiles = 100_000

// isTrace reports whether a file's name is that of a rank's trace. The trace of vLLM's
// front end has no GPU in it, SGLang's merged one repeats the others.
func isTrace(name string) bool {
	if strings.Contains(name, "async_llm") || strings.HasPrefix(name, "merged-") {
		return false
	}
	return strings.HasSuffix(name, ".json") || strings.HasSuffix(name, ".json.gz")
}

func watch(dir string) (*traces, error) {
	t := &traces{dir: dir, whole: map[string]fileState{}}
	var err error
	t.before, err = t.list()
	t.last = t.before
	return t, err
}

// list returns the traces that are in the folder itself: what vLLM captures while it
// makes graphs is in a folder below.
func (t *traces) list() (map[string]fileState, error) {
	found := map[string]fileState{}
	entries, err := os.ReadDir(t.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return found, nil // the server makes it
	}
	if err != nil {
		return nil, fmt.Errorf("looking for traces: %w", err)
	}
	if len(entries) > maxFiles {
		return nil, fmt.Errorf("%s has more than %d files: name an emptier folder", t.dir, maxFiles)
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && isTrace(e.Name()) {
			found[e.Name()] = fileState{info.Size(), info.ModTime()}
		}
	}
	return found, nil
}

// look returns the new traces that are whole, and how many new ones there are. One that
// has grown since the last look is still being written.
func (t *traces) look(ctx context.Context) (whole []string, all int, err error) {
	now, err := t.list()
	if err != nil {
		return nil, 0, err
	}
	for name, state := range now {
		if t.before[name] == state {
			continue
		}
		all++
		if t.whole[name] != state && t.last[name] == state && isWhole(ctx, filepath.Join(t.dir, name)) {
			t.whole[name] = state
		}
		if t.whole[name] == state {
			whole = append(whole, filepath.Join(t.dir, name))
		}
	}
	t.last = now
	slices.Sort(whole)
	return whole, all, ctx.Err()
}

// isWhole reports whether a file of JSON, packed or not, ends as JSON does.
func isWhole(ctx context.Context, path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			return false
		}
	} else if info, err := f.Stat(); err == nil && info.Size() > 4096 {
		if _, err := f.Seek(-4096, io.SeekEnd); err != nil {
			return false
		}
	}
	tail := byte(0)
	buffer := make([]byte, 256<<10)
	for ctx.Err() == nil {
		n, err := r.Read(buffer)
		if b := bytes.TrimRight(buffer[:n], " \t\r\n"); len(b) > 0 {
			tail = b[len(b)-1]
		}
		if err == io.EOF {
			return tail == '}' || tail == ']'
		}
		if err != nil {
			return false
		}
	}
	return false
}

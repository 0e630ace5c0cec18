package datasets

import (
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// The names of files that are read as JSON lines or CSV, compressed or not.
const csvExt = ".csv"

var (
	lineExts   = []string{".jsonl", ".ndjson", csvExt}
	packedExts = []string{".gz", ".zst"}
)

// A file may hold so many times its own bytes, and loosest besides: more is taken for
// one that was made to fill the disk.
const (
	mostPacked = 2000
	loosest    = 1 << 30
)

// IsLines reports whether a file's name says that it has JSON lines or CSV.
func IsLines(name string) bool {
	name, _ = unpacked(name)
	return slices.Contains(lineExts, strings.ToLower(path.Ext(name)))
}

// unpacked is a file's name without what says how it is compressed, and that.
func unpacked(name string) (plain, packed string) {
	if Scheme(name) != "" {
		name, _, _ = strings.Cut(name, "?")
	}
	ext := strings.ToLower(path.Ext(name))
	if slices.Contains(packedExts, ext) {
		return name[:len(name)-len(ext)], ext
	}
	return name, ""
}

// OpenLines opens files of JSON lines or CSV as one [Input], in their order; see [OpenStream].
func OpenLines(paths []string) (in *Input, err error) {
	var all []io.Reader
	var closes []io.Closer
	defer func() {
		for _, c := range closes {
			err = errors.Join(err, c.Close())
		}
	}()
	for _, p := range paths {
		r, close, err := openLines(p)
		if err != nil {
			return nil, badFile(p, err)
		}
		if plain, _ := unpacked(p); strings.EqualFold(path.Ext(plain), csvExt) {
			lines := csvLines(r)
			r, close = lines, append([]io.Closer{lines}, close...)
		}
		closes = append(closes, close...)
		all = append(all, r, strings.NewReader("\n")) // the last line may have no end
	}
	name := paths[0]
	if len(paths) > 1 {
		name = fmt.Sprintf("%s and %d more files", name, len(paths)-1)
	}
	return openStream(io.MultiReader(all...), name, true)
}

// csvLines are the JSON lines of a CSV. Close returns when nobody reads r any more.
func csvLines(r io.Reader) io.ReadCloser {
	out, in := io.Pipe()
	c := &csvReader{out, make(chan struct{})}
	go func() {
		defer close(c.done)
		in.CloseWithError(linesOfCSV(r, in))
	}()
	return c
}

type csvReader struct {
	*io.PipeReader
	done chan struct{}
}

func (c *csvReader) Close() error {
	err := c.PipeReader.Close()
	<-c.done
	return err
}

// openLines opens a file here or in an object store, unpacked.
func openLines(name string) (r io.Reader, close []io.Closer, err error) {
	p := parquetFile{source: source{path: name}}
	if err := p.open(); err != nil {
		return nil, nil, err
	}
	close = []io.Closer{&p}
	r = io.NewSectionReader(p.r, 0, p.size)
	_, packed := unpacked(name)
	switch packed {
	case ".gz":
		r, err = gzip.NewReader(r)
	case ".zst":
		var z *zstd.Decoder
		if z, err = zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(128<<20)); err == nil {
			close, r = append(close, z.IOReadCloser()), z
		}
	default:
		return r, close, nil
	}
	if err != nil {
		return nil, nil, errors.Join(err, p.Close())
	}
	return &bounded{r, mostPacked*p.size + loosest}, close, nil
}

// bounded is an error where more is read than is left.
type bounded struct {
	r    io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("it unpacks to more than %d times its size", mostPacked)
	}
	return n, err
}

package datasets

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/parquet-go/parquet-go"
)

// OpenStream reads r to its end and opens what it had as an [Input]: JSON lines (see
// [JSONLines]), Arrow IPC, or CSV, as its first bytes say. The rows are kept as a
// Parquet file in a folder of its own until Close. name stands for the path of the file.
func OpenStream(r io.Reader, name string) (in *Input, err error) { return openStream(r, name, false) }

// openStream is OpenStream; with lines there is no CSV.
func openStream(r io.Reader, name string, lines bool) (in *Input, err error) {
	temp, err := NewTemporary()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = temp.Remove()
		}
	}()
	dir := temp.Dir
	raw, err := os.Create(filepath.Join(dir, "stream"))
	if err != nil {
		return nil, err
	}
	defer raw.Close()
	if _, err = io.Copy(raw, r); err != nil {
		return nil, badFile(name, err)
	}
	if _, err = raw.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	table := filepath.Join(dir, "stream.parquet")
	if err = convert(raw, name, table, lines); err != nil {
		return nil, err
	}
	if err = os.Remove(raw.Name()); err != nil {
		return nil, err
	}
	if in, err = open([]source{{path: table, bare: true}}); err != nil {
		return nil, err
	}
	in.temp = temp
	f := &in.Files[0]
	f.Path, f.local, f.ModTime = name, table, 0 // the same bytes are the same input, whenever they come
	return in, nil
}

// convert writes a stream's rows as a Parquet file.
func convert(raw *os.File, name, path string, lines bool) error {
	head := make([]byte, 8)
	n, err := io.ReadFull(raw, head)
	if err != nil && err != io.ErrUnexpectedEOF && err != io.EOF {
		return badFile(name, err)
	}
	head = head[:n]
	if _, err := raw.Seek(0, io.SeekStart); err != nil {
		return badFile(name, err)
	}
	switch {
	case len(bytes.TrimSpace(head)) == 0:
		return badFile(name, errors.New("it is empty: give JSON lines, Arrow IPC or CSV"))
	case bytes.HasPrefix(head, []byte(parquetMagic)):
		return badFile(name, errors.New("a Parquet file cannot be read as a stream: name the file itself"))
	case bytes.HasPrefix(head, []byte(arrowMagic)), bytes.HasPrefix(head, []byte{0xff, 0xff, 0xff, 0xff}):
		return arrowTable(raw, name, path)
	}
	if text := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n"); !lines && len(text) > 0 &&
		text[0] != '{' && text[0] != '[' {
		return convertCSV(raw, name, path)
	}
	return JSONLines(raw, name, path)
}

func convertCSV(raw *os.File, name, path string) error {
	lines, err := os.Create(raw.Name() + ".jsonl")
	if err != nil {
		return err
	}
	defer os.Remove(lines.Name())
	defer lines.Close()
	if err := linesOfCSV(raw, lines); err != nil {
		return badFile(name, err)
	}
	if _, err := lines.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return JSONLines(lines, name, path)
}

// Close removes what the input keeps on disk.
func (in *Input) Close() error {
	if in.temp == nil {
		return nil
	}
	return in.temp.Remove()
}

// tableOf is the schema of files whose rows are all ours to give, and which only this
// process reads: their texts take less memory without dictionaries and bounds of pages.
func tableOf(root *node, meta map[string]string) *Output {
	for _, leaf := range root.leafNodes() {
		leaf.brief = true
	}
	return &Output{root: root, inputs: root.leaves, schema: parquet.NewSchema("schema", root), meta: meta}
}

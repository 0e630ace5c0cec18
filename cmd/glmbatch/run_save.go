package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"glmbatch/datasets"
	"glmbatch/pipeline"
)

// The formats of a job's rows besides the files of its folder.
const (
	formatLines  = datasets.Lines
	formatCSV    = "csv"
	formatOpenAI = "openai"
)

var stdoutFormats = []string{datasets.Arrow, formatLines, formatCSV, formatOpenAI}

// saved says what the name of a file of --save asks for.
type saved struct {
	format string
	packed string // .gz, .zst, or "": it is not compressed
	errors string // file of OpenAI's errors
}

// saveAs takes a file's name apart. Lines of a job of batch requests are OpenAI's.
func saveAs(path string, batch bool) (s saved, err error) {
	plain := path
	for _, ext := range []string{".gz", ".zst"} {
		if p, ok := strings.CutSuffix(path, ext); ok {
			plain, s.packed = p, ext
		}
	}
	ext := filepath.Ext(plain)
	switch {
	case ext == ".csv":
		s.format = formatCSV
	case ext != ".jsonl" && ext != ".ndjson":
		return s, fmt.Errorf("--save %s: the name does not end with .jsonl or .csv, nor with .gz or .zst behind", path)
	case batch:
		s.format = formatOpenAI
		s.errors = strings.TrimSuffix(plain, ext) + ".errors" + ext + s.packed
	default:
		s.format = formatLines
	}
	return s, nil
}

// saveRows writes a job's rows to the file of --save and to standard output.
func (r *runFlags) saveRows(stdout io.Writer, batch bool) error {
	toStdout := r.stdout != "" && !r.printed
	if !toStdout && r.save == "" {
		return nil
	}
	dir := r.jobDir()
	paths, err := datasets.Expand([]string{filepath.Join(dir, datasets.OutputsDir)})
	if err != nil {
		return err
	}
	in, err := datasets.Open(paths)
	if err != nil {
		return err
	}
	if r.save != "" {
		if err := r.saveFile(in, dir, r.save, batch); err != nil {
			return withCode(exitOutput, err)
		}
	}
	if !toStdout {
		return nil
	}
	return withCode(exitOutput, r.writeRows(in, dir, r.stdout, stdout, stdout))
}

// saveFile writes the file, and that of errors; each has its name when it is whole.
func (r *runFlags) saveFile(in *datasets.Input, dir, path string, batch bool) error {
	s, err := saveAs(path, batch)
	if err != nil {
		return err
	}
	out, err := packInto(path, s.packed)
	if err != nil {
		return err
	}
	errs := out
	if s.errors != "" {
		if errs, err = packInto(s.errors, s.packed); err != nil {
			out.file.Abort()
			return err
		}
	}
	err = r.writeRows(in, dir, s.format, out, errs)
	for _, f := range slices.Compact([]*packed{out, errs}) {
		err = f.finish(err)
	}
	return err
}

func (r *runFlags) writeRows(in *datasets.Input, dir, format string, out, errs io.Writer) error {
	switch format {
	case formatLines:
		return in.WriteJSONLines(out)
	case formatCSV:
		return in.WriteCSV(out, datasets.CSVOptions{Spreadsheet: r.spreadsheet})
	case formatOpenAI:
		info, err := pipeline.ReadBatchInfo(dir)
		if err != nil {
			return err
		}
		return pipeline.WriteBatch(in, info, out, errs)
	}
	return in.WriteArrow(out)
}

// packed is a file that is compressed on its way, or not.
type packed struct {
	io.Writer
	file  *datasets.Aside
	close func() error
}

func packInto(path, ext string) (*packed, error) {
	file, err := datasets.CreateAside(path)
	if err != nil {
		return nil, err
	}
	p := &packed{Writer: file, file: file, close: func() error { return nil }}
	switch ext {
	case ".gz":
		z := gzip.NewWriter(file)
		p.Writer, p.close = z, z.Close
	case ".zst":
		z, err := zstd.NewWriter(file, zstd.WithEncoderConcurrency(1))
		if err != nil {
			file.Abort()
			return nil, err
		}
		p.Writer, p.close = z, z.Close
	}
	return p, nil
}

// finish gives the file its name, unless something failed.
func (p *packed) finish(err error) error {
	if cerr := p.close(); err == nil {
		err = cerr
	}
	if err != nil {
		p.file.Abort()
		return err
	}
	return errors.Join(err, p.file.Commit())
}

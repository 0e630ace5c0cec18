package datasets

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// The formats of [Writer] and [Read], which are also the files' extensions.
const (
	Parquet = "parquet"
	Arrow   = "arrow"
)

const (
	groupRows  = 50_000
	groupBytes = 64 << 20 // most bytes of a row group, before compression
)

// Writer writes rows of a struct type to one file: Parquet, or Arrow IPC if its
// name ends in ".arrow". Tags are the schema: `parquet:"name,dict" arrow:"name,dict"`.
type Writer[T any] struct {
	file *Aside
	pq   *parquet.GenericWriter[T]
	ipc  *arrowWriter[T]
	rows int
}

// Create begins a file. The file has its name only after Close. meta is stored
// as the file's key-value metadata.
func Create[T any](path string, meta map[string]string) (*Writer[T], error) {
	file, err := CreateAside(path)
	if err != nil {
		return nil, err
	}
	w := &Writer[T]{file: file}
	switch ext := strings.TrimPrefix(filepath.Ext(path), "."); ext {
	case Parquet:
		options := []parquet.WriterOption{parquet.Compression(codec), parquet.MaxRowsPerRowGroup(groupRows),
			parquet.DefaultEncoding(&parquet.Plain),
			createdBy, noPageBounds, parquet.PageBufferSize(pageBytes)}
		for k, v := range meta {
			options = append(options, parquet.KeyValueMetadata(k, v))
		}
		err = guard(func() error {
			w.pq = parquet.NewGenericWriter[T](file, options...)
			return nil
		})
	case Arrow:
		w.ipc, err = newArrowWriter[T](file.file, meta)
	default:
		err = fmt.Errorf("%s: unknown format %q: parquet or arrow", path, ext)
	}
	if err != nil {
		file.Abort()
		return nil, err
	}
	return w, nil
}

const pageBytes = 64 << 10 // of a column before it is written as a page

var createdBy = parquet.CreatedBy("glmbatch", "1", "")

// noPageBounds keeps minima and maxima out of page headers, where they would be
// whole, twice, and uncompressed: the column index has them, cut to 16 bytes.
var noPageBounds = parquet.DataPageStatistics(false)

// Write appends rows.
func (w *Writer[T]) Write(rows []T) (err error) {
	if w.pq != nil {
		_, err = w.pq.Write(rows)
	} else {
		err = w.ipc.write(rows)
	}
	w.rows += len(rows)
	if err != nil {
		return fmt.Errorf("writing %s: %w", w.file.path, err)
	}
	return nil
}

// Rows returns the number of rows written.
func (w *Writer[T]) Rows() int { return w.rows }

// Close finishes the file and gives it its name.
func (w *Writer[T]) Close() (err error) {
	if w.pq != nil {
		err = w.pq.Close()
	} else {
		err = w.ipc.close()
	}
	if err != nil {
		w.file.Abort()
		return fmt.Errorf("writing %s: %w", w.file.path, err)
	}
	return w.file.Commit()
}

// Abort drops the file.
func (w *Writer[T]) Abort() { w.file.Abort() }

// Parts writes a folder of numbered files, part-00000 and so on, each of at most
// MaxRows rows.
type Parts[T any] struct {
	Dir     string
	Format  string // Parquet or Arrow
	MaxRows int
	Next    int // number of the next file
	// Before is called before a file is finished; nil: nothing is. Its error is Write's.
	Before func() error

	open *Writer[T]
}

// Write appends rows, and finishes the file when it is full.
func (p *Parts[T]) Write(rows []T) (err error) {
	for len(rows) > 0 {
		if p.open == nil {
			if p.open, err = Create[T](p.path(), nil); err != nil {
				return err
			}
		}
		n := min(len(rows), p.MaxRows-p.open.Rows())
		if err := p.open.Write(rows[:n]); err != nil {
			return err
		}
		rows = rows[n:]
		if p.open.Rows() >= p.MaxRows {
			if err := p.finish(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *Parts[T]) path() string {
	return filepath.Join(p.Dir, PartName(p.Next, p.Format))
}

// Flush finishes the open file, if there is one.
func (p *Parts[T]) Flush() error {
	if p.open == nil {
		return nil
	}
	return p.finish()
}

func (p *Parts[T]) finish() error {
	if p.Before != nil {
		if err := p.Before(); err != nil {
			return err
		}
	}
	w := p.open
	p.open = nil
	p.Next++
	return w.Close()
}

// Close finishes the open file. If none was ever begun it writes one without
// rows, so that the folder has a schema.
func (p *Parts[T]) Close() (err error) {
	if p.open == nil {
		if p.Next > 0 {
			return nil
		}
		if p.open, err = Create[T](p.path(), nil); err != nil {
			return err
		}
	}
	return p.finish()
}

// Abort drops the open file.
func (p *Parts[T]) Abort() {
	if p.open != nil {
		p.open.Abort()
		p.open = nil
	}
}

// PartName is the name of file n of a folder.
func PartName(n int, format string) string { return fmt.Sprintf("part-%05d.%s", n, format) }

package datasets

import (
	"fmt"
	"io"
	"os"

	"github.com/parquet-go/parquet-go"
)

// Read calls f with the rows of a file, or of every Parquet and Arrow file of a
// folder in the order of their names, a block at a time. Columns that a file
// lacks are zero. The rows are f's only until it returns.
func Read[T any](path string, f func(rows []T) error) error {
	files, err := tables(path)
	if err != nil {
		return err
	}
	for _, file := range files {
		if isArrow(file) {
			err = readArrow(file, f)
		} else {
			err = readParquet(file, f)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ReadAll returns all rows of a file or folder.
func ReadAll[T any](path string) ([]T, error) {
	var all []T
	err := Read(path, func(rows []T) error {
		all = append(all, rows...)
		return nil
	})
	return all, err
}

func tables(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, badFile(path, err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	return tablesBelow(path)
}

const readRows = 1024

func readParquet[T any](path string, f func([]T) error) error {
	file, err := openParquet(source{path: path})
	if err != nil {
		return err
	}
	defer file.Close()
	var r *parquet.GenericReader[T]
	err = guard(func() error {
		for g := range file.RowGroups() {
			if err := checkGroup(file, g); err != nil {
				return err
			}
		}
		r = parquet.NewGenericReader[T](file.File)
		return nil
	})
	if err != nil {
		return badFile(path, err)
	}
	defer guard(r.Close)
	rows := make([]T, readRows)
	var seen int64
	for {
		n := 0
		err := guard(func() (err error) {
			clear(rows)
			n, err = r.Read(rows)
			return err
		})
		if err != nil && err != io.EOF {
			return badFile(path, fmt.Errorf("damaged Parquet data: %w", err))
		}
		seen += int64(n)
		if n > 0 {
			if err := f(rows[:n]); err != nil {
				return err
			}
		}
		switch {
		case err == io.EOF && seen != file.NumRows():
			return badFile(path, fmt.Errorf("damaged Parquet data: %d rows of %d", seen, file.NumRows()))
		case err == io.EOF:
			return nil
		case n == 0:
			return badFile(path, io.ErrNoProgress)
		}
	}
}

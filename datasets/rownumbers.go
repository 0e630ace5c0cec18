package datasets

import (
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
)

// RowNumbers calls f with row_index and sample_index of each row of an output file,
// in the file's order, and reads no other column.
func RowNumbers(path string, f func(row, sample int64) error) error {
	file, err := openParquet(source{path: path})
	if err != nil {
		return err
	}
	defer file.Close()
	root := fileNode(file.File)
	prefix := file.keyValues()[keyPrefix]
	rows, samples := numberColumn(root, prefix+"row_index"), numberColumn(root, prefix+"sample_index")
	if rows == nil || samples == nil {
		return badFile(path, errors.New("it has no columns row_index and sample_index: it is no output of glmbatch"))
	}
	for g, group := range file.RowGroups() {
		err := guard(func() error {
			if err := checkGroup(file, g); err != nil {
				return err
			}
			r, err := longs(group.ColumnChunks()[rows.first])
			if err != nil {
				return err
			}
			s, err := longs(group.ColumnChunks()[samples.first])
			if err != nil {
				return err
			}
			if len(r) != len(s) || int64(len(r)) != group.NumRows() {
				return fmt.Errorf("row group %d has %d rows, %d row and %d sample indexes", g, group.NumRows(), len(r), len(s))
			}
			for i := range r {
				if err := f(r[i], s[i]); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return badFile(path, err)
		}
	}
	return nil
}

// numberColumn is the whole-number column of a name; nil: there is none.
func numberColumn(root *node, name string) *node {
	n := root.field(name)
	if n == nil || !n.leaf || shape(n) != Int {
		return nil
	}
	return n
}

// longs are all values of a column of whole numbers.
func longs(c parquet.ColumnChunk) ([]int64, error) {
	pages := c.Pages()
	defer pages.Close()
	var all []int64
	buf := make([]parquet.Value, readRows)
	for {
		page, err := pages.ReadPage()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		for values := page.Values(); ; {
			n, err := values.ReadValues(buf)
			for _, v := range buf[:n] {
				if v.Kind() == parquet.Int32 {
					all = append(all, int64(v.Int32()))
				} else {
					all = append(all, v.Int64())
				}
			}
			if err == io.EOF {
				break
			}
			if err != nil {
				return nil, err
			}
			if n == 0 {
				return nil, io.ErrNoProgress
			}
		}
		parquet.Release(page)
	}
}

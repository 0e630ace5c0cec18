package datasets

import (
	"errors"
	"fmt"

	"glmbatch/datasets/pages"
)

// RowNumbers calls f with row_index and sample_index of each row of an output file,
// in the file's order, and reads no other column.
func RowNumbers(path string, f func(row, sample int64) error) error {
	file, err := openParquet(source{path: path})
	if err != nil {
		return err
	}
	defer file.Close()
	return badFile(path, guard(func() error {
		root := fileNode(file.File)
		prefix := file.keyValues()[keyPrefix]
		rows, samples := numberColumn(root, prefix+"row_index"), numberColumn(root, prefix+"sample_index")
		if rows == nil || samples == nil {
			return errors.New("it has no columns row_index and sample_index: it is no output of glmbatch")
		}
		for g := range file.Groups {
			r, err := file.longs(g, rows)
			if err != nil {
				return err
			}
			s, err := file.longs(g, samples)
			if err != nil {
				return err
			}
			for i := range r {
				if err := f(r[i], s[i]); err != nil {
					return err
				}
			}
		}
		return nil
	}))
}

// numberColumn is the whole-number column of a name; nil: there is none.
func numberColumn(root *node, name string) *node {
	n := root.field(name)
	if n == nil || !n.leaf || shape(n) != Int {
		return nil
	}
	return n
}

// longs are all values of a column of whole numbers in a row group.
func (p *parquetFile) longs(group int, leaf *node) ([]int64, error) {
	rows := p.Groups[group].Rows
	if rows > maxBlockRows {
		return nil, fmt.Errorf("%d rows in one row group; at most %d can be read", rows, maxBlockRows)
	}
	all := make([]int64, rows)
	err := p.windows(group, leaf, len(all), nil, func(at int, w *pages.Window) error {
		windowIntegers(leaf, w, all[at:at+w.N], func(v int64) int64 { return v })
		return nil
	})
	return all, err
}

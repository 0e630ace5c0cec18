package datasets

import (
	"fmt"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/bitutil"
)

// checkNulls reports a batch whose columns say another number of nulls than their validity
// bitmaps have: one of the two is damaged, and no one can say which values are there.
func checkNulls(batch arrow.Record) error {
	for i, column := range batch.Columns() {
		if err := countNulls(column.Data()); err != nil {
			return fmt.Errorf("column %q: %w", batch.ColumnName(i), err)
		}
	}
	return nil
}

func countNulls(data arrow.ArrayData) error {
	said := data.(*array.Data).NullN()
	if buffers := data.Buffers(); said >= 0 && len(buffers) > 0 && buffers[0] != nil &&
		hasBitmap(data.DataType().ID()) {
		bitmap := buffers[0].Bytes()
		if int64(len(bitmap))*8 < int64(data.Offset())+int64(data.Len()) {
			if said > 0 || len(bitmap) > 0 {
				return fmt.Errorf("%w: a validity bitmap of %d bytes for %d values: write the file again", errArrow,
					len(bitmap), data.Len())
			}
			return nil
		}
		if nulls := data.Len() - bitutil.CountSetBits(bitmap, data.Offset(), data.Len()); nulls != said {
			return fmt.Errorf("%w: null_count is %d, the validity bitmap has %d nulls: write the file again", errArrow,
				said, nulls)
		}
	}
	for _, child := range data.Children() {
		if err := countNulls(child); err != nil {
			return err
		}
	}
	if values := data.Dictionary(); values != nil && values.(*array.Data) != nil {
		return countNulls(values)
	}
	return nil
}

// hasBitmap reports whether a type's first buffer is a validity bitmap.
func hasBitmap(id arrow.Type) bool {
	switch id {
	case arrow.NULL, arrow.SPARSE_UNION, arrow.DENSE_UNION, arrow.RUN_END_ENCODED:
		return false
	}
	return true
}

package datasets

import (
	"errors"
	"fmt"
)

// Describe stores metadata that is known only after the rows. Only Parquet
// files can take it.
func (w *Writer[T]) Describe(key, value string) error {
	if w.pq == nil {
		return fmt.Errorf("writing %s: %w", w.file.path,
			errors.New("only Parquet files take metadata after their rows; name the file .parquet"))
	}
	w.pq.SetKeyValueMetadata(key, value)
	return nil
}

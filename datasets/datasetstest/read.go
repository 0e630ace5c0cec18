// Package datasetstest reads files in tests: there is one function, [ReadAll].
package datasetstest

import "glmbatch/datasets"

// ReadAll returns all rows of a file or folder.
func ReadAll[T any](path string) ([]T, error) {
	var all []T
	err := datasets.Read(path, func(rows []T) error {
		all = append(all, rows...)
		return nil
	})
	return all, err
}

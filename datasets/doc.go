// Package datasets has every row that is ever on disk, and is the only importer
// of the columnar libraries.
package datasets

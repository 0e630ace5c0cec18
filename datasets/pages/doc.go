// Package pages reads Parquet files down to the values of their columns: the
// footer, page headers, checksums, codecs, levels and encodings. It knows the
// file format and nothing of tables, and imports no columnar library.
//
// [Open] reads a footer into a [File]; [File.Column] reads one column chunk, a
// [Window] of values at a time. A page is held decompressed and decoded as its
// values are asked for, so that a page of many equal values costs what its bytes
// do. A [Budget] is shared by the columns that are open at once.
//
// Caveats:
//
//   - Every byte is taken for hostile. What is wrong is a damage; what this package
//     cannot read is an [ErrUnsupported], and what needs a key an [ErrEncrypted].
//   - Checksums are verified where pages have them.
//   - A window and its values are the column's own, until its next window.
package pages

// Package datasets has every row that is ever on disk, and is the only importer
// of the columnar libraries.
//
// There are two kinds of rows. Rows of our own are Go structs ([Span], [Step],
// [Result], …) whose tags are the schema; [Writer], [Parts] and [Read] move them
// to and from Parquet and Arrow IPC files. Rows of users keep their own schema:
// [Input] reads Parquet files as one table, a [Record] is one row of it as it
// lies in the file, a [Field] looks into one column, and [Output] writes records
// back with our columns behind theirs, so that every input column passes through
// with its type, its nulls and its values.
//
// Caveats:
//
//   - Every file is taken for hostile. Opening and reading turn panics of the
//     libraries into errors that name the file. Budgets are in package pages and
//     in reader.go.
//   - Parquet is read by package pages, whose values and bounds are checked, and
//     written by parquet-go. What it does not know of an input's schema, and bounds
//     in the order of what values mean, are put into the footer at last.
//   - Files are written aside under a name that starts with a dot, synced, and
//     renamed: a file that has its name is whole.
//   - Lists and byte slices that were nil when written come back empty.
package datasets

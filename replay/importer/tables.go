package importer

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"modernc.org/sqlite" // registers the driver "sqlite"

	"glmbatch/datasets"
)

// source is an Nsight Systems export: an SQLite file, or a folder with one
// Parquet or Arrow file a table. Tables and columns are found by name, since
// versions add both.
type source struct {
	path    string
	db      *sql.DB
	size    int64                      // of the SQLite file
	columns map[string]map[string]bool // of the SQLite tables
	files   map[string]string          // of the folder's tables
}

const (
	sqliteMagic = "SQLite format 3\x00"
	maxTables   = 4096
	// textLimit is where texts of an export are cut.
	textLimit = 4 * maxName
)

func openSource(path string) (*source, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("opening the export: %w", err)
	}
	s := &source{path: path}
	if info.IsDir() {
		return s, s.openFolder()
	}
	return s, s.openSQLite()
}

func (s *source) close() {
	if s.db != nil {
		s.db.Close()
	}
}

func (s *source) openFolder() error {
	entries, err := os.ReadDir(s.path)
	if err != nil {
		return fmt.Errorf("opening the export: %w", err)
	}
	s.files = map[string]string{}
	for _, e := range entries[:min(len(entries), maxTables)] {
		ext := filepath.Ext(e.Name())
		switch strings.ToLower(ext) {
		case "." + datasets.Parquet, "." + datasets.Arrow:
			s.files[strings.TrimSuffix(e.Name(), ext)] = filepath.Join(s.path, e.Name())
		}
	}
	if len(s.files) == 0 {
		return fmt.Errorf("%s: no nsys export: a parquetdir or arrowdir has one .parquet or .arrow file a table",
			s.path)
	}
	return nil
}

func (s *source) openSQLite() error {
	f, err := os.Open(s.path)
	if err != nil {
		return fmt.Errorf("opening the export: %w", err)
	}
	head := make([]byte, 512)
	n, _ := io.ReadFull(f, head) // a short file has no magic number, and that is said
	f.Close()
	head = head[:n]
	if !bytes.HasPrefix(head, []byte(sqliteMagic)) {
		if known := kindOfFile(head); known != "" {
			return fmt.Errorf("%s: no nsys export: it is %s", s.path, known)
		}
		return fmt.Errorf("%s: no nsys export: not an SQLite file; of a report (.nsys-rep) make one with: nsys "+
			"export --type sqlite --include-blobs=true FILE", s.path)
	}
	if info, err := os.Stat(s.path); err == nil {
		s.size = info.Size()
	}
	abs, err := filepath.Abs(s.path)
	if err != nil {
		return fmt.Errorf("opening the export: %w", err)
	}
	u := url.URL{Scheme: "file", Path: abs,
		RawQuery: "mode=ro&immutable=1&_pragma=query_only(1)&_pragma=trusted_schema(0)&_pragma=cell_size_check(1)"}
	s.db, err = sql.Open("sqlite", u.String())
	if err != nil {
		return fmt.Errorf("opening %s: %w", s.path, err)
	}
	s.db.SetMaxOpenConns(1)
	if err := s.limit(); err != nil {
		return err
	}
	s.columns = map[string]map[string]bool{}
	return s.guard(s.schema)
}

// maxCell bounds a value of an export, which a damaged length would make a gigabyte.
const maxCell = 64 << 20

func (s *source) limit() error {
	return s.guard(func() error {
		c, err := s.db.Conn(context.Background())
		if err != nil {
			return fmt.Errorf("%s: opening the SQLite file: %w", s.path, err)
		}
		defer c.Close()
		const length = 0 // SQLITE_LIMIT_LENGTH
		if _, err := sqlite.Limit(c, length, maxCell); err != nil {
			return fmt.Errorf("%s: opening the SQLite file: %w", s.path, err)
		}
		return nil
	})
}

// guard turns what the SQLite library does on damaged files into errors.
func (s *source) guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s: damaged SQLite file: %v", s.path, p)
		}
	}()
	return f()
}

// schema reads the names of ordinary tables and their stored columns. Views,
// virtual tables and generated columns could run anything, so they are not read.
func (s *source) schema() error {
	rows, err := s.db.QueryContext(context.Background(),
		`SELECT m.name, c.name FROM sqlite_schema AS m, pragma_table_xinfo(m.name) AS c
		 WHERE m.type = 'table' AND m.rootpage > 0 AND c.hidden = 0 LIMIT 200000`)
	if err != nil {
		return fmt.Errorf("%s: reading the tables: %w", s.path, err)
	}
	defer rows.Close()
	for rows.Next() {
		var table, column string
		if err := rows.Scan(&table, &column); err != nil {
			return fmt.Errorf("%s: reading the tables: %w", s.path, err)
		}
		if s.columns[table] == nil {
			s.columns[table] = map[string]bool{}
		}
		s.columns[table][column] = true
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("%s: reading the tables: %w", s.path, err)
	}
	return nil
}

// has reports whether the export has a table; lazy exports leave out empty ones.
func (s *source) has(table string) bool {
	return s.columns[table] != nil || s.files[table] != ""
}

// errStop ends a reading early.
var errStop = errors.New("stop")

// readTable calls f with every row of a table. T's parquet tags name the
// columns; null and absent columns are zero. A table that is not there has no
// rows.
func readTable[T any](s *source, table string, f func(row *T) error) error {
	if !s.has(table) {
		return nil
	}
	var err error
	if s.db != nil {
		err = s.guard(func() error { return readSQLite(s, table, f) })
	} else {
		err = datasets.Read(s.files[table], func(rows []T) error {
			for i := range rows {
				if err := f(&rows[i]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if errors.Is(err, errStop) {
		return nil
	}
	return err
}

// cell takes any SQLite value for an integer or text field.
type cell struct {
	to reflect.Value
}

// Scan implements [sql.Scanner].
func (c *cell) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		c.to.SetZero()
		return nil
	case int64:
		if c.to.CanInt() && !c.to.OverflowInt(v) {
			c.to.SetInt(v)
			return nil
		}
	case string:
		if c.to.Kind() == reflect.String {
			c.to.SetString(v)
			return nil
		}
	case []byte:
		if c.to.Kind() == reflect.String {
			c.to.SetString(string(v))
			return nil
		}
	}
	return fmt.Errorf("a value of type %T does not fit %v", v, c.to.Type())
}

// leastRow is the least number of bytes that a row takes in a file: its place in the
// page, its length, its id and the length of its header.
const leastRow = 5

// metadataRows bounds the tables that describe an export.
var metadataRows = map[string]int64{"META_DATA_EXPORT": 100_000, "TARGET_INFO_SESSION_START_TIME": 10_000,
	"DIAGNOSTIC_EVENT": 10_000_000}

func readSQLite[T any](s *source, table string, f func(row *T) error) error {
	var row T
	fields := reflect.ValueOf(&row).Elem()
	var names []string
	var cells []any
	for i := range fields.NumField() {
		column := fields.Type().Field(i).Tag.Get("parquet")
		if !s.columns[table][column] {
			continue
		}
		quoted := `"` + column + `"`
		if fields.Field(i).Kind() == reflect.String {
			quoted = fmt.Sprintf("substr(%s, 1, %d)", quoted, textLimit)
		}
		names = append(names, quoted)
		cells = append(cells, &cell{fields.Field(i)})
	}
	if len(names) == 0 {
		return fmt.Errorf("%s: table %s has none of the columns of an nsys export", s.path, table)
	}
	// A table's rows come in the order of their ids: where the pages of a damaged file
	// lead back to where they were, an id is not larger than the one before.
	id, before, first := int64(0), int64(0), true
	query := fmt.Sprintf(`SELECT %s, rowid FROM "%s"`, strings.Join(names, ", "), table)
	rows, err := s.db.QueryContext(context.Background(), query)
	if err != nil {
		return fmt.Errorf("%s: table %s: %w", s.path, table, err)
	}
	defer rows.Close()
	cells = append(cells, &id)
	for n := int64(1); rows.Next(); n++ {
		if err := rows.Scan(cells...); err != nil {
			return fmt.Errorf("%s: table %s: %w", s.path, table, err)
		}
		if !first && id <= before || n > s.size/leastRow {
			return fmt.Errorf("%s: damaged SQLite file: the pages of table %s lead in a circle; export the report again", s.path, table)
		}
		if limit := metadataRows[table]; limit > 0 && n > limit {
			return fmt.Errorf("%s: table %s has more than %d rows; no nsys export has", s.path, table, limit)
		}
		before, first = id, false
		if err := f(&row); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("%s: table %s: %w", s.path, table, err)
	}
	return nil
}

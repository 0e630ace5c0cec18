package datasets

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// CSV as RFC 4180 has it, with a header row: commas, quotes where they are needed, one
// more quote for each in a quoted field.

// linesOfCSV writes the rows of a CSV as JSON lines. An empty field is null. Whole
// numbers, numbers and true or false are values if they are written as this program
// would write them, so that none changes; all else is text.
func linesOfCSV(in io.Reader, out io.Writer) error {
	start := bufio.NewReader(in)
	if mark, err := start.Peek(3); err == nil && string(mark) == "\ufeff" {
		_, _ = start.Discard(3)
	}
	left := &lineBudget{r: start}
	r := csv.NewReader(left)
	r.ReuseRecord = true
	header, err := r.Read()
	if err == io.EOF {
		return errors.New("it is empty: the first row has the names of the columns")
	}
	if err != nil {
		return err
	}
	keys, err := csvKeys(header)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(out, 1<<16)
	var line []byte
	for {
		left.read, left.commas = 0, 0
		fields, err := r.Read()
		if err == io.EOF {
			return w.Flush()
		}
		if err != nil {
			return err
		}
		line = append(line[:0], '{')
		for i, f := range fields {
			if i > 0 {
				line = append(line, ',')
			}
			line = append(append(line, keys[i]...), ':')
			if !utf8.ValidString(f) {
				at, _ := r.FieldPos(i)
				return fmt.Errorf("line %d: %w", at, ErrUTF8)
			}
			line = appendCSV(line, f)
		}
		if _, err := w.Write(append(line, "}\n"...)); err != nil {
			return err
		}
	}
}

// csvKeys are the columns' names as JSON.
func csvKeys(header []string) ([][]byte, error) {
	if len(header) > maxJSONColumns {
		return nil, fmt.Errorf("it has %d columns, at most %d can be read", len(header), maxJSONColumns)
	}
	seen := map[string]bool{}
	var keys [][]byte
	for i, name := range header {
		if name == "" || seen[name] || !utf8.ValidString(name) {
			return nil, fmt.Errorf("line 1: column %d is called %q: each needs a name of its own in the header row",
				i+1, name)
		}
		seen[name] = true
		key, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

func appendCSV(to []byte, f string) []byte {
	if f == "" {
		return append(to, "null"...)
	}
	if f == "true" || f == "false" {
		return append(to, f...)
	}
	if n, err := strconv.ParseInt(f, 10, 64); err == nil && strconv.FormatInt(n, 10) == f {
		return append(to, f...)
	}
	if x, err := strconv.ParseFloat(f, 64); err == nil && strings.Contains(f, ".") &&
		!strings.ContainsAny(f, "nNiIxX_eE") && strconv.FormatFloat(x, 'f', -1, 64) == f {
		return append(to, f...)
	}
	text, _ := json.Marshal(f) // valid UTF-8
	return append(to, text...)
}

// lineBudget is an error where one row takes more than maxLine.
type lineBudget struct {
	r      io.Reader
	read   int64
	commas int
	quoted bool
}

// aheadCSV is more than what is read of the rows behind the one at hand.
const aheadCSV = 1 << 13

func (b *lineBudget) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.read += int64(n); b.read > maxLine {
		return 0, fmt.Errorf("a row is longer than %d bytes: is a quote missing?", maxLine)
	}
	for _, c := range p[:n] {
		switch {
		case c == '"':
			b.quoted = !b.quoted
		case c == ',' && !b.quoted:
			b.commas++
		}
	}
	if b.commas > maxJSONColumns+aheadCSV {
		return 0, fmt.Errorf("a row has more than %d columns", maxJSONColumns)
	}
	return n, err
}

// CSVOptions say how values become fields. The zero value is as a program reads them back.
type CSVOptions struct {
	Spreadsheet bool // texts that a spreadsheet would run have an apostrophe before them: see [Cell]
}

// Cell is a text for a cell of a CSV file: what a spreadsheet would run as a formula gets
// an apostrophe before it.
func Cell(s string) string {
	if s != "" && strings.IndexByte("=+-@\t\r", s[0]) >= 0 {
		return "'" + s
	}
	return s
}

// WriteCSV writes all rows to w, with a header row. Null is an empty field, lists and
// structs are JSON.
func (in *Input) WriteCSV(w io.Writer, o CSVOptions) error {
	out := csv.NewWriter(w)
	var fields []Field
	for _, name := range in.Names() {
		f, ok := in.Lookup(name)
		if !ok {
			return fmt.Errorf("%s: no column %q", in.Paths(), name)
		}
		fields = append(fields, f)
	}
	names := in.Names()
	for i := range names {
		if o.Spreadsheet {
			names[i] = Cell(names[i])
		}
	}
	if err := out.Write(names); err != nil {
		return err
	}
	row := make([]string, len(fields))
	err := in.Each(func(rec Record) (err error) {
		for i, f := range fields {
			if row[i], err = f.csv(rec); err != nil {
				return badFile(in.Paths(), fmt.Errorf("row %d: column %q: %w", rec.Index, f.Name, err))
			}
			if o.Spreadsheet && f.Shape != Int && f.Shape != Float {
				row[i] = Cell(row[i])
			}
		}
		if len(row) == 1 && row[0] == "" { // an empty line would be no row
			out.Flush()
			_, err = io.WriteString(w, "\"\"\n")
			return err
		}
		return out.Write(row)
	})
	if err != nil {
		return err
	}
	out.Flush()
	return out.Error()
}

// csv is a value as a field.
func (f Field) csv(rec Record) (string, error) {
	if f.Shape == Text {
		text, _, err := f.Text(rec)
		return string(text), err
	}
	v, ok, err := f.JSON(nil, rec)
	if err != nil || !ok {
		return "", err
	}
	var s string
	if json.Unmarshal(v, &s) == nil { // large numbers and dates
		return s, nil
	}
	return string(v), nil
}

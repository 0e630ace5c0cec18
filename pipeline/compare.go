package pipeline

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"glmbatch/datasets"
)

// CompareOptions say how outputs are compared.
type CompareOptions struct {
	By    string // column whose values rows are counted by; "": none
	Check string // column of right answers; "": none
}

// Comparison is how the output rows of two jobs differ. Rows are the same where they
// have the same row_index and sample_index.
type Comparison struct {
	A       string              `json:"a"`
	B       string              `json:"b"`
	OnlyA   int64               `json:"only_in_a"`
	OnlyB   int64               `json:"only_in_b"`
	All     Compared            `json:"all"`
	Reasons map[string]Compared `json:"by_finish_reason"` // "stop", or "stop, then length" where they differ
	Groups  map[string]Compared `json:"by_group,omitempty"`
	First   *Difference         `json:"first_difference"` // null: there is none

	OtherInput string `json:"other_input,omitempty"` // in what the jobs' inputs differ, where that is known
}

// Compared counts rows that both have.
type Compared struct {
	Rows   int64 `json:"rows"`
	Equal  int64 `json:"equal"`             // in response, reasoning, finish_reason and error_code
	Check  int64 `json:"checked,omitempty"` // with a right answer
	RightA int64 `json:"right_a,omitempty"`
	RightB int64 `json:"right_b,omitempty"`
}

// Difference is the first row that differs, and what differs first in it.
type Difference struct {
	Row    int64  `json:"row_index"`
	Sample int64  `json:"sample_index"`
	Column string `json:"column"`
	At     int    `json:"at_byte"` // of the column's text
	A      string `json:"a"`       // the text from there, cut; "null" for a null
	B      string `json:"b"`
}

// Equal reports whether both have the same rows.
func (c *Comparison) Equal() bool { return c.OnlyA+c.OnlyB == 0 && c.All.Equal == c.All.Rows }

// comparedColumns are what must be the same, in the order of what is said first.
var comparedColumns = []string{"error_code", "finish_reason", "reasoning", "response"}

// Compare compares the outputs of two jobs, which must be in the order of their rows.
func Compare(a, b *datasets.Input, o CompareOptions) (*Comparison, error) {
	c := &Comparison{A: a.Paths(), B: b.Paths(), Reasons: map[string]Compared{}}
	left, err := newOutputRows(a)
	if err != nil {
		return nil, err
	}
	defer left.Close()
	right, err := newOutputRows(b)
	if err != nil {
		return nil, err
	}
	defer right.Close()
	var check *checker
	if o.Check != "" || o.By != "" {
		if check, err = comparer(a, o); err != nil {
			return nil, err
		}
	}
	if o.By != "" {
		c.Groups = map[string]Compared{}
	}
	x, y := left.next(), right.next()
	for x != nil || y != nil {
		switch {
		case y == nil || x != nil && x.before(y):
			c.OnlyA++
			x = left.next()
		case x == nil || y.before(x):
			c.OnlyB++
			y = right.next()
		default:
			c.pair(x, y, check, o)
			x, y = left.next(), right.next()
		}
	}
	return c, errors.Join(left.err, right.err)
}

// OtherInput says in what the inputs of the jobs of two folders differ; "": they do not,
// or it is not known, as of folders that are no job's.
func OtherInput(a, b string) string {
	x, _ := readManifest(a) // what cannot be read says nothing
	y, _ := readManifest(b)
	if x == nil || y == nil {
		return ""
	}
	if len(x.Input) != len(y.Input) {
		return fmt.Sprintf("%d files and %d", len(x.Input), len(y.Input))
	}
	if f := otherFile(x.Input, y.Input); f != nil {
		return fmt.Sprintf("%s has other rows in B", f.Path)
	}
	return ""
}

// comparer is the checker of A's rows; without a column of answers it only groups.
func comparer(a *datasets.Input, o CompareOptions) (*checker, error) {
	if o.Check != "" {
		return findChecker(a, &Options{Check: o.Check, CheckBy: o.By})
	}
	return findChecker(a, &Options{Check: o.By, CheckBy: o.By})
}

func (c *Comparison) pair(x, y *outputRow, check *checker, o CompareOptions) {
	one := Compared{Rows: 1, Equal: 1}
	for i := range comparedColumns {
		if x.values[i] == y.values[i] {
			continue
		}
		one.Equal = 0
		if c.First == nil {
			c.First = difference(x, y, i)
		}
		break
	}
	if o.Check != "" {
		for _, side := range []struct {
			row   *outputRow
			right *int64
		}{{x, &one.RightA}, {y, &one.RightB}} {
			right, ok := check.right(side.row.values[len(comparedColumns)-1].text, x.record)
			if ok {
				one.Check = 1
			}
			if ok && right {
				*side.right = 1
			}
		}
	}
	c.All = c.All.plus(one)
	reason := x.values[1].text
	if other := y.values[1].text; other != reason {
		reason += ", then " + other
	}
	addCompared(c.Reasons, reason, one)
	if o.By != "" {
		addCompared(c.Groups, check.groupOf(x.record), one)
	}
}

func (c Compared) plus(o Compared) Compared {
	return Compared{c.Rows + o.Rows, c.Equal + o.Equal, c.Check + o.Check, c.RightA + o.RightA, c.RightB + o.RightB}
}

func addCompared(m map[string]Compared, name string, one Compared) {
	if _, ok := m[name]; !ok && len(m) >= maxGroups {
		name = otherGroups
	}
	m[name] = m[name].plus(one)
}

// shownBytes of a text are in a difference.
const shownBytes = 80

func difference(x, y *outputRow, i int) *Difference {
	a, b := x.values[i], y.values[i]
	d := &Difference{Row: x.row, Sample: x.sample, Column: comparedColumns[i]}
	for d.At < min(len(a.text), len(b.text)) && a.text[d.At] == b.text[d.At] {
		d.At++
	}
	d.A, d.B = a.from(d.At), b.from(d.At)
	return d
}

// nullText is a text, or null.
type nullText struct {
	text string
	ok   bool
}

func (n nullText) from(at int) string {
	if !n.ok {
		return "null"
	}
	return strings.ToValidUTF8(n.text[at:min(len(n.text), at+shownBytes)], "\uFFFD")
}

// outputRow is an output row as far as it is compared.
type outputRow struct {
	row, sample int64
	values      [4]nullText // of comparedColumns
	record      datasets.Record
}

func (r *outputRow) before(o *outputRow) bool {
	return r.row < o.row || r.row == o.row && r.sample < o.sample
}

// outputRows reads a job's output rows in their order.
type outputRows struct {
	*datasets.Reader
	in      *datasets.Input
	fields  [6]datasets.Field // comparedColumns, row_index, sample_index
	records []datasets.Record
	last    *outputRow
	err     error
}

func newOutputRows(in *datasets.Input) (*outputRows, error) {
	r := &outputRows{in: in}
	for i, name := range append(slices.Clone(comparedColumns), "row_index", "sample_index") {
		want := datasets.Text
		if i >= len(comparedColumns) {
			want = datasets.Int
		}
		f, ok := in.Lookup(in.ResultName(name))
		if !ok || f.Shape != want {
			return nil, fmt.Errorf("%s: there is no column %s of results: name the output of a job", in.Paths(),
				in.ResultName(name))
		}
		r.fields[i] = f
	}
	r.Reader = in.Reader(0, in.Rows)
	return r, nil
}

// next returns nil after the last row, or with an error in r.err.
func (r *outputRows) next() *outputRow {
	if len(r.records) == 0 {
		var err error
		if r.records, err = r.Read(); err != nil {
			if err != io.EOF {
				r.err = err
			}
			return nil
		}
	}
	row := &outputRow{record: r.records[0]}
	r.records = r.records[1:]
	for i := range comparedColumns {
		text, ok, err := r.fields[i].Text(row.record)
		if err != nil {
			r.err = fmt.Errorf("%s: column %s: %w", r.in.Paths(), r.fields[i].Name, err)
			return nil
		}
		row.values[i] = nullText{string(text), ok}
	}
	for i, to := range []*int64{&row.row, &row.sample} {
		text, _, err := r.fields[len(comparedColumns)+i].JSON(nil, row.record)
		if err == nil {
			*to, err = strconv.ParseInt(string(text), 10, 64)
		}
		if err != nil {
			r.err = fmt.Errorf("%s: column %s: %w", r.in.Paths(), r.fields[len(comparedColumns)+i].Name, err)
			return nil
		}
	}
	if r.last != nil && !r.last.before(row) {
		r.err = fmt.Errorf("%s: row %d, sample %d is not in its order: compare takes outputs as jobs write them",
			r.in.Paths(), row.row, row.sample)
		return nil
	}
	r.last = row
	return row
}

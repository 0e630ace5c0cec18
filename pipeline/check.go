package pipeline

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"glmbatch/datasets"
)

// checker compares responses with right answers.
type checker struct {
	answers datasets.Field
	group   *datasets.Field // rows are counted by its values too
}

// Checked are how many responses were compared, and how many were right.
type Checked struct {
	Checked int64 `json:"checked"`
	Correct int64 `json:"correct"`
}

// maxGroups bounds the groups that are counted apart; otherGroups has the rest.
const (
	maxGroups   = 1000
	otherGroups = "(others)"
)

func findChecker(in *datasets.Input, o *Options) (*checker, error) {
	if o.Check == "" {
		if o.CheckBy != "" {
			return nil, fmt.Errorf("--check-by %s needs --check, the column of right answers", o.CheckBy)
		}
		return nil, nil
	}
	c := &checker{}
	for _, column := range []struct {
		flag, name string
		to         *datasets.Field
	}{{"check", o.Check, &c.answers}, {"check-by", o.CheckBy, nil}} {
		if column.name == "" {
			continue
		}
		f, ok := in.Lookup(column.name)
		switch {
		case !ok:
			return nil, noColumn(in, column.name)
		case slices.Contains([]datasets.Shape{datasets.List, datasets.Struct}, f.Shape):
			return nil, fmt.Errorf("%s: column %q is %s: --%s takes columns of single values", in.Paths(), f.Name,
				f.Type(), column.flag)
		}
		if column.to != nil {
			*column.to = f
		} else {
			c.group = &f
		}
	}
	return c, nil
}

// right reports whether a response is the row's right answer; ok is false where there
// is none to compare with.
func (c *checker) right(response string, rec datasets.Record) (right, ok bool) {
	if c.answers.Shape == datasets.Text {
		want, ok, err := c.answers.Text(rec)
		return string(want) == response, ok && err == nil
	}
	v, ok, err := c.answers.JSON(nil, rec)
	if !ok || err != nil {
		return false, false
	}
	want, said := plain(v), strings.TrimSpace(response)
	switch c.answers.Shape {
	case datasets.Int, datasets.Float:
		return sameNumber(want, said), true
	case datasets.Bool:
		return strings.EqualFold(want, said), true
	}
	return want == said, true
}

// plain is a JSON value without the quotes of a string.
func plain(v []byte) string {
	var s string
	if json.Unmarshal(v, &s) == nil {
		return s
	}
	return string(v)
}

// sameNumber compares numbers however they are written: exactly where both are written
// out, else as doubles.
func sameNumber(a, b string) bool {
	if a == b {
		return true
	}
	const digits, most = "+-.0123456789", 100
	if len(a) > most || len(b) > most {
		return false
	}
	if strings.Trim(a, digits) == "" && strings.Trim(b, digits) == "" {
		x, okX := new(big.Rat).SetString(a)
		y, okY := new(big.Rat).SetString(b)
		return okX && okY && x.Cmp(y) == 0
	}
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	return errX == nil && errY == nil && x == y
}

// groupOf is the group of a row; "": it has none.
func (c *checker) groupOf(rec datasets.Record) string {
	if c.group == nil {
		return ""
	}
	v, ok, err := c.group.JSON(nil, rec)
	switch {
	case err != nil:
		return "(not valid)"
	case !ok:
		return "(null)"
	}
	return oneLine(fmt.Errorf("%s", plain(v)))
}

// groups are counts by group.
type groups map[string]Checked

// add counts n more, and returns g, which it makes if it is nil.
func (g groups) add(group string, n Checked) groups {
	if g == nil {
		g = groups{}
	}
	if _, ok := g[group]; !ok && len(g) >= maxGroups {
		group = otherGroups
	}
	g[group] = Checked{g[group].Checked + n.Checked, g[group].Correct + n.Correct}
	return g
}

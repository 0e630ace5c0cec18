package report

import (
	"cmp"
	"slices"

	"glmbatch/replay/attribute"
)

// renamed pairs the kernels that only one side has by what they do: a kernel of A and
// one of B of the same class that run equally often in a step are one kernel with two
// names, those of the same grid first, then the longest first. A library's new version
// renames kernels, and a change of all of them from something to nothing says little.
func renamed(a, b *attribute.Section, list []Change) []Change {
	rows := func(rows []attribute.Row) map[identity]*attribute.Row {
		m := map[identity]*attribute.Row{}
		for i := range rows {
			m[identity{rows[i].Label, rows[i].Class}] = &rows[i]
		}
		return m
	}
	as, bs := rows(a.Rows), rows(b.Rows)
	var onlyA, onlyB []*attribute.Row
	for _, c := range list {
		switch id := (identity{c.Name, c.Class}); c.Verdict {
		case OnlyA:
			onlyA = append(onlyA, as[id])
		case OnlyB:
			onlyB = append(onlyB, bs[id])
		}
	}
	longest := func(x, y *attribute.Row) int { return cmp.Compare(y.Self, x.Self) }
	slices.SortStableFunc(onlyA, longest)
	slices.SortStableFunc(onlyB, longest)
	taken := map[identity]bool{}
	var pairs []Change
	for _, sameGrid := range []bool{true, false} {
		for _, x := range onlyA {
			if taken[identity{x.Label, x.Class}] {
				continue
			}
			i := slices.IndexFunc(onlyB, func(y *attribute.Row) bool {
				return y.Class == x.Class && !taken[identity{y.Label, y.Class}] &&
					perStep(a, x.Calls) == perStep(b, y.Calls) &&
					(!sameGrid || x.Key.GridX == y.Key.GridX && x.Key.Block == y.Key.Block)
			})
			if i < 0 || x.Class == "" || x.Class == unclassified {
				continue
			}
			y := onlyB[i]
			taken[identity{x.Label, x.Class}], taken[identity{y.Label, y.Class}] = true, true
			c := paired(a, b, x, y)
			c.Name, c.NameB = x.Label, y.Label
			pairs = append(pairs, c)
		}
	}
	list = slices.DeleteFunc(list, func(c Change) bool {
		return (c.Verdict == OnlyA || c.Verdict == OnlyB) && taken[identity{c.Name, c.Class}]
	})
	list = append(list, pairs...)
	slices.SortStableFunc(list, func(x, y Change) int { return cmp.Compare(abs(y.Delta), abs(x.Delta)) })
	return list
}

// unclassified kernels have nothing in common but that.
const unclassified = "unclassified"

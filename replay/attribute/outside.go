package attribute

import (
	"cmp"
	"slices"

	"glmbatch/replay/timeline"
)

// Outside is the device work that belongs to no step.
type Outside struct {
	Calls   int64
	NS      int64 // lengths of the spans
	Classes []OutsideClass
}

// OutsideClass is one class of it.
type OutsideClass struct {
	Class string `json:"class"`
	Calls int64  `json:"calls"`
	NS    int64  `json:"total_ns"`
}

// Loose takes in rows of no step.
func (a *Attribution) Loose(rows []timeline.Event) {
	for i := range rows {
		e := &rows[i]
		if e.Role != timeline.Device {
			continue
		}
		if impossible(e) {
			a.split.rejected++
			continue
		}
		a.outside = grow(a.outside, int(e.Class)+1)
		a.outside[e.Class].Calls++
		a.outside[e.Class].NS += e.End - e.Start
	}
}

// Outside returns what belongs to no step, the longest class first.
func (a *Attribution) Outside() Outside {
	var o Outside
	for class, c := range a.outside {
		if c.Calls == 0 {
			continue
		}
		c.Class = a.names.Name(int32(class))
		o.Calls, o.NS = o.Calls+c.Calls, o.NS+c.NS
		o.Classes = append(o.Classes, c)
	}
	slices.SortFunc(o.Classes, func(x, y OutsideClass) int {
		return cmp.Or(cmp.Compare(y.NS, x.NS), cmp.Compare(x.Class, y.Class))
	})
	return o
}

package inflight

import (
	"testing"

	"glmbatch/kernels"
)

// A step that was launched ahead lasts from landing to landing, with what the host did
// in that time, unless it was alone and its calls took longer than that.
func TestTimesOfAhead(t *testing.T) {
	at := func(from, to int64) kernels.Interval { return kernels.Interval{Start: from, End: to} }
	own := kernels.Times{Schedule: at(100, 110), Upload: at(110, 115), Launch: at(115, 120)}
	next := kernels.Times{Schedule: at(160, 163), Upload: at(163, 166), Launch: at(166, 170)}
	ahead := kernels.Times{Wall: at(150, 200), Sample: at(150, 157), Schedule: at(170, 170), Upload: at(170, 170),
		Launch: at(170, 170), Device: at(170, 200)}
	beside := next
	beside.Wall, beside.Sample, beside.Device = ahead.Wall, ahead.Sample, ahead.Device
	lockstep := own
	lockstep.Wall, lockstep.Device, lockstep.Sample = at(100, 200), at(120, 200), at(200, 200)
	for _, c := range []struct {
		about string
		last  int64 // when the step before landed
		alone bool
		busy  int64
		next  *kernels.Times // launched meanwhile
		want  kernels.Times
	}{
		{"landing to landing", 150, false, 90, nil, ahead},
		{"the next was launched", 150, false, 90, &next, beside},
		{"alone, and calls no longer", 150, true, 50, nil, ahead},
		{"alone, and longer calls", 150, true, 51, nil, lockstep},
		{"launched after landing", 119, false, 50, nil, lockstep},
		{"the first", 0, false, 50, &next, lockstep},
	} {
		r := Ring{last: c.last, sample: at(150, 157), did: c.next, landed: 1, launched: 1}
		s := r.at(0)
		s.host, s.Alone, s.Spans = own, c.alone, [][]kernels.Span{{{Start: 130, End: 130 + c.busy}}}
		r.record(s, 170, 200)
		if s.Times != c.want {
			t.Errorf("%s: %+v, want %+v", c.about, s.Times, c.want)
		}
		if r.last != 200 || r.did != nil {
			t.Errorf("%s: landed at %d", c.about, r.last)
		}
		r.Sampled()
		if x := &s.Times; r.ahead && *x != c.want || !r.ahead && (x.Sample != r.sample || x.Wall.End != r.sample.End ||
			r.sample.Start != 200) {
			t.Errorf("%s: after its tokens: %+v", c.about, *x)
		}
	}
}

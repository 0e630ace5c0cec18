package engine

import "testing"

// A step that was launched ahead lasts from landing to landing, unless its calls
// took longer than that.
func TestTimesOfAhead(t *testing.T) {
	m := marks{begun: 100, scheduled: 110, uploaded: 115, launched: 120}
	for _, c := range []struct {
		busy  int64
		want  StepInfo
		about string
	}{
		{0, StepInfo{StartNS: 150, WallNS: 50, SampleNS: 7, DeviceNS: 30, Ahead: true}, "landing to landing"},
		{50, StepInfo{StartNS: 150, WallNS: 50, SampleNS: 7, DeviceNS: 30, Ahead: true}, "calls as long"},
		{51, StepInfo{StartNS: 100, WallNS: 105, ScheduleNS: 10, UploadNS: 5, LaunchNS: 5, DeviceNS: 80, SampleNS: 5}, "longer calls"},
	} {
		k := clock{start: 170, mark: 205, landed: 150, sampling: 7}
		k.spent[device], k.spent[sample] = 30, 5
		var got StepInfo
		k.times(&got, m, c.busy)
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", c.about, got, c.want)
		}
		if k.landed != 200 || k.sampling != 5 {
			t.Errorf("%s: landed at %d, sampling %d", c.about, k.landed, k.sampling)
		}
	}
}

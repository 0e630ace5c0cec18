package replay

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"

	"glmbatch/kernels"
)

// A capture of a version whose headers had durations is read, and its step's phases are
// where they were.
func TestHeaderOfDurations(t *testing.T) {
	file, err := os.Open("testdata/capture-durations.arrow.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	z, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), FileName(1))
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	x := &c.Times
	if c.Kind != kernels.Decode || x.Ahead() || x.Wall.NS() <= 0 || x.Schedule.Start != x.Wall.Start ||
		x.Upload.Start != x.Schedule.End ||
		x.Device.Start != x.Launch.End || x.Sample.End != x.Wall.End {
		t.Errorf("%s %+v", c.Kind, x)
	}
	for _, rank := range c.Spans {
		for _, s := range rank {
			if s.Start < x.Upload.End || s.End > x.Device.End {
				t.Errorf("a call from %d to %d, in a step of %+v", s.Start, s.End, x)
			}
		}
	}
	if _, err := parseHeader([]byte(`{"step": 1, "wait_ns": 5}`)); err == nil {
		t.Error("a header with another field is read")
	}
}

// What a header of this version says is what is read.
func TestHeaderOfTimes(t *testing.T) {
	at := func(from, to int64) kernels.Interval { return kernels.Interval{Start: from, End: to} }
	for _, x := range []struct {
		old  durations
		want kernels.Times
	}{
		{durations{StartNS: 100, WallNS: 90, ScheduleNS: 10, UploadNS: 20, LaunchNS: 5, DeviceNS: 50, SampleNS: 5},
			kernels.Times{Wall: at(100, 190), Schedule: at(100, 110), Upload: at(110, 130), Launch: at(130, 135),
				Device: at(135, 185), Sample: at(185, 190)}},
		{durations{StartNS: 100, WallNS: 90, ScheduleNS: 10, UploadNS: 20, LaunchNS: 5, DeviceNS: 40, SampleNS: 5,
			Ahead: true},
			kernels.Times{Wall: at(100, 190), Sample: at(100, 105), Schedule: at(115, 125), Upload: at(125, 145),
				Launch: at(145, 150), Device: at(150, 190)}},
	} {
		text, err := json.Marshal(x.old)
		if err != nil {
			t.Fatal(err)
		}
		h, err := parseHeader(text)
		if err != nil || h.Times != x.want {
			t.Errorf("%+v, want %+v: %v", h.Times, x.want, err)
		}
		if text, err = json.Marshal(h); err != nil {
			t.Fatal(err)
		}
		if again, err := parseHeader(text); err != nil || again.Times != x.want {
			t.Errorf("%+v, want %+v: %v", again.Times, x.want, err)
		}
	}
}

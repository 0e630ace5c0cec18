package replay

import (
	"bytes"
	"encoding/json"

	"glmbatch/kernels"
)

// parseHeader reads a header as a file has it, of this version or of one before it.
func parseHeader(text []byte) (Header, error) {
	var h struct {
		Header
		durations
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&h); err != nil {
		return Header{}, err
	}
	if h.WallNS != 0 {
		h.Times = h.times()
	}
	return h.Header, nil
}

// durations are what headers had before they had times: when the step began and how
// long its phases took.
type durations struct {
	StartNS    int64 `json:"start_ns"`
	WallNS     int64 `json:"wall_ns"`
	ScheduleNS int64 `json:"schedule_ns"`
	UploadNS   int64 `json:"upload_ns"`
	LaunchNS   int64 `json:"launch_ns"`
	DeviceNS   int64 `json:"device_ns"`
	SampleNS   int64 `json:"sample_ns"`
	Ahead      bool  `json:"ahead"` // launched before the step before it had landed
}

// times puts the phases where they were: in a step that was launched ahead the tokens of
// the one before come first, and the others end with the step.
func (d *durations) times() kernels.Times {
	at := d.StartNS
	next := func(ns int64) kernels.Interval {
		i := kernels.Interval{Start: at, End: at + ns}
		at = i.End
		return i
	}
	t := kernels.Times{Wall: kernels.Interval{Start: d.StartNS, End: d.StartNS + d.WallNS}}
	if d.Ahead {
		t.Sample = next(d.SampleNS)
		at = t.Wall.End - d.DeviceNS - d.LaunchNS - d.UploadNS - d.ScheduleNS
	}
	t.Schedule, t.Upload, t.Launch, t.Device = next(d.ScheduleNS), next(d.UploadNS), next(d.LaunchNS), next(d.DeviceNS)
	if !d.Ahead {
		t.Sample = next(d.SampleNS)
	}
	return t
}

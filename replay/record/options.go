package record

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"time"
)

// Options say what to record. URL and Traces must be given.
type Options struct {
	URL string // of the server: http://127.0.0.1:30000
	// absolute folder where traces come to be: the server is told (SGLang), or was when it started (vLLM)
	Traces   string
	Steps    int    // decode steps; 0: 5
	Requests int    // sequences that are decoded meanwhile; 0: none are sent, the server has load of its own
	Warmup   int    // tokens that each has got before recording begins; 0: 16
	Ranks    int    // traces to wait for; 0: as many as the server says, or that come
	Stacks   bool   // also record Python frames and shapes, which slows the host down
	Key      string // API key; "": none

	Timeout time.Duration // of all; 0: 5 minutes
	Appear  time.Duration // for the first trace after the steps; 0: 1 minute
	Window  time.Duration // how long a vLLM server with load of its own is recorded; 0: 3 s

	Log io.Writer // what goes on, a line each; nil: nothing
}

// Validate reports everything that is wrong with the options.
func (o *Options) Validate() error {
	var errs []error
	if u, err := url.Parse(o.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		errs = append(errs, fmt.Errorf("url %q: say it as http://127.0.0.1:30000", o.URL))
	}
	for _, v := range []struct {
		name        string
		value, most int
	}{{"steps", o.Steps, 10_000}, {"requests", o.Requests, 4096}, {"warm-up tokens", o.Warmup, 100_000},
		{"ranks", o.Ranks, 65_536}} {
		if v.value < 0 || v.value > v.most {
			errs = append(errs, fmt.Errorf("%s is %d, must be 0 to %d", v.name, v.value, v.most))
		}
	}
	if o.Timeout < 0 || o.Appear < 0 || o.Window < 0 {
		errs = append(errs, errors.New("a time must not be negative"))
	}
	return errors.Join(errs...)
}

func (o Options) withDefaults() Options {
	set := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	set(&o.Timeout, 5*time.Minute)
	set(&o.Appear, time.Minute)
	set(&o.Window, 3*time.Second)
	if o.Steps == 0 {
		o.Steps = 5
	}
	if o.Warmup == 0 {
		o.Warmup = 16
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	return o
}

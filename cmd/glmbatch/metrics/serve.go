package metrics

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Address is where --metrics-addr says to listen: a port alone, or one without a host,
// is this machine's own, which others do not reach.
func Address(s string) (string, error) {
	if !strings.Contains(s, ":") {
		s = ":" + s
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return "", err
	}
	if _, err := net.LookupPort("tcp", port); err != nil || port == "" {
		return "", fmt.Errorf("%q is no port", port)
	}
	if host == "" {
		host = "localhost"
	}
	return net.JoinHostPort(host, port), nil
}

// Server answers GET /metrics.
type Server struct {
	URL  string
	http http.Server
	done sync.WaitGroup
}

// Serve begins to answer at an address, with what Go says of the process too.
func (j *Job) Serve(addr string) (*Server, error) {
	r := prometheus.NewRegistry()
	if err := errors.Join(r.Register(j), r.Register(collectors.NewGoCollector()),
		r.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(r, promhttp.HandlerOpts{Timeout: 10 * time.Second,
		MaxRequestsInFlight: 4}))
	s := &Server{URL: "http://" + listener.Addr().String() + "/metrics"}
	s.http = http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 20 * time.Second, MaxHeaderBytes: 16 << 10}
	s.done.Go(func() { _ = s.http.Serve(listener) }) // ends with Close
	return s, nil
}

// Close ends the server; requests that it has begun get a second.
func (s *Server) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close()
	}
	s.done.Wait()
}

// FileEvery is how often a file is written.
const FileEvery = 5 * time.Second

// CheckFile says what is wrong with a name for node_exporter's textfile collector.
func CheckFile(path string) error {
	if filepath.Ext(path) != ".prom" {
		return fmt.Errorf("%q: node_exporter reads only files whose names end in .prom", path)
	}
	return nil
}

// File writes a file again and again until it is closed. Whoever reads it sees a whole one.
type File struct {
	path string
	r    *prometheus.Registry
	quit chan struct{}
	done sync.WaitGroup
}

// Write writes the metrics to a file, which must be possible now, and goes on. It has
// none of the process, whose names node_exporter's own would have.
func (j *Job) Write(path string) (*File, error) {
	f := &File{path: path, r: prometheus.NewRegistry(), quit: make(chan struct{})}
	if err := f.r.Register(j); err != nil {
		return nil, err
	}
	if err := f.write(); err != nil {
		return nil, err
	}
	f.done.Go(func() {
		tick := time.NewTicker(FileEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				_ = f.write() // the next one may be possible
			case <-f.quit:
				return
			}
		}
	})
	return f, nil
}

func (f *File) write() error { return prometheus.WriteToTextfile(f.path, f.r) }

// Close writes the file a last time and leaves it. Its error is of that.
func (f *File) Close() error {
	close(f.quit)
	f.done.Wait()
	return f.write()
}

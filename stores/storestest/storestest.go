// Package storestest is an S3 server in the process of a test, with faults.
package storestest

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

const bucket = "bucket"

// Server is a bucket at an address of this machine.
type Server struct {
	Faults Faults

	backend gofakes3.Backend
	http    *httptest.Server
	mu      sync.Mutex
	random  *rand.Rand
	counts  struct{ requests, injected, puts int }
	last    string
}

// Faults are how often a request meets one, from 0 to 1.
type Faults struct {
	Refuse float64 // 503, as for load
	Reset  float64 // the connection ends, at once or within the body
	Slow   float64 // the body comes in pieces
	Forbid bool    // everything is refused for good
	Seed   uint64
}

// New starts a server that ends with the test, and gives the process its credentials.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{backend: s3mem.New()}
	if err := s.backend.CreateBucket(bucket); err != nil {
		t.Fatal(err)
	}
	s.http = httptest.NewServer(s.faulty(gofakes3.New(s.backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server()))
	t.Cleanup(s.http.Close)
	for k, v := range map[string]string{"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "key",
		"AWS_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_MAX_ATTEMPTS": "1"} {
		t.Setenv(k, v)
	}
	return s
}

// URL is that of a key.
func (s *Server) URL(key string) string {
	return fmt.Sprintf("s3://%s/%s?endpoint=%s&use_path_style=true&disable_https=true", bucket, key, s.http.URL)
}

// Put stores an object, without faults.
func (s *Server) Put(t testing.TB, key string, data []byte) {
	t.Helper()
	if _, err := s.backend.PutObject(bucket, key,
		map[string]string{"Last-Modified": time.Now().UTC().Format(http.TimeFormat)}, bytes.NewReader(data),
		int64(len(data)), nil); err != nil {
		t.Fatal(err)
	}
}

// Get returns an object, without faults.
func (s *Server) Get(t testing.TB, key string) []byte {
	t.Helper()
	o, err := s.backend.GetObject(bucket, key, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Contents.Close()
	data, err := io.ReadAll(o.Contents)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Keys are those of all objects, sorted.
func (s *Server) Keys(t testing.TB) []string {
	t.Helper()
	l, err := s.backend.ListBucket(bucket, &gofakes3.Prefix{}, gofakes3.ListBucketPage{})
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, o := range l.Contents {
		keys = append(keys, o.Key)
	}
	return keys
}

// Requests, Injected and Puts are how many requests there were, faults, and objects written.
func (s *Server) Requests() int { s.mu.Lock(); defer s.mu.Unlock(); return s.counts.requests }
func (s *Server) Injected() int { s.mu.Lock(); defer s.mu.Unlock(); return s.counts.injected }
func (s *Server) Puts() int     { s.mu.Lock(); defer s.mu.Unlock(); return s.counts.puts }

// LastPut is the key that was written last.
func (s *Server) LastPut() string { s.mu.Lock(); defer s.mu.Unlock(); return s.last }

func (s *Server) faulty(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fault := s.choose(r)
		switch fault {
		case "forbid":
			w.Header().Set("Content-Type", "application/xml")
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `<Error><Code>AccessDenied</Code><Message>no</Message></Error>`)
			return
		case "refuse":
			w.Header().Set("Content-Type", "application/xml")
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w,
				`<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>`)
			return
		case "reset":
			s.cut(w, r, next)
			return
		case "slow":
			next.ServeHTTP(&slowWriter{w}, r)
		default:
			next.ServeHTTP(w, r)
		}
		if r.Method == http.MethodPut && !r.URL.Query().Has("partNumber") || r.Method == http.MethodPost &&
			r.URL.Query().Has("uploadId") {
			s.mu.Lock()
			s.counts.puts++
			s.last = strings.TrimPrefix(r.URL.Path, "/"+bucket+"/")
			s.mu.Unlock()
		}
	})
}

func (s *Server) choose(r *http.Request) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts.requests++
	if s.random == nil {
		s.random = rand.New(rand.NewPCG(s.Faults.Seed, 1))
	}
	x, f := s.random.Float64(), s.Faults
	fault := ""
	switch {
	case f.Forbid:
		fault = "forbid"
	case x < f.Refuse:
		fault = "refuse"
	case x < f.Refuse+f.Reset:
		fault = "reset"
	case x < f.Refuse+f.Reset+f.Slow:
		fault = "slow"
	}
	if fault != "" {
		s.counts.injected++
	}
	return fault
}

// cut answers with half a body, and ends the connection.
func (s *Server) cut(w http.ResponseWriter, r *http.Request, next http.Handler) {
	rec := httptest.NewRecorder()
	if r.Method == http.MethodGet {
		next.ServeHTTP(rec, r)
		for k, v := range rec.Header() {
			w.Header()[k] = v
		}
		w.Header().Set("Content-Length", fmt.Sprint(rec.Body.Len()))
		w.WriteHeader(rec.Code)
		_, _ = w.Write(rec.Body.Bytes()[:rec.Body.Len()/2])
		_ = http.NewResponseController(w).Flush()
	}
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	c.Close()
}

// slowWriter sends a body in pieces.
type slowWriter struct{ http.ResponseWriter }

func (s *slowWriter) Write(p []byte) (n int, err error) {
	const piece = 256 << 10
	for len(p) > 0 && err == nil {
		var k int
		k, err = s.ResponseWriter.Write(p[:min(piece, len(p))])
		n += k
		p = p[k:]
		_ = http.NewResponseController(s.ResponseWriter).Flush()
		time.Sleep(time.Millisecond)
	}
	return n, err
}

package record

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// Engine is the program that serves.
type Engine string

// The engines whose profilers are known.
const (
	SGLang Engine = "SGLang"
	VLLM   Engine = "vLLM"
)

// maxReply bounds what is read of a reply.
const maxReply = 1 << 20

// server is a running server.
type server struct {
	client  http.Client
	url     string // without a slash at its end
	key     string
	engine  Engine
	version string
	model   string
	ranks   int // 0: unknown
}

// status is a reply that is no success.
type status struct {
	code int
	text string
}

func (s status) Error() string { return fmt.Sprintf("HTTP %d: %s", s.code, s.text) }

// call sends a request, with a body in JSON where one is given, and returns the reply.
func (s *server) call(ctx context.Context, method, path string, body any) ([]byte, error) {
	r, err := s.send(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	reply, err := io.ReadAll(io.LimitReader(r.Body, maxReply))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	return reply, nil
}

func (s *server) send(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var b io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		b = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, b)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if s.key != "" {
		req.Header.Set("Authorization", "Bearer "+s.key)
	}
	r, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	if r.StatusCode < 200 || r.StatusCode > 299 {
		text, _ := io.ReadAll(io.LimitReader(r.Body, 300))
		r.Body.Close()
		return nil, fmt.Errorf("%s %s: %w", method, path, status{r.StatusCode, strings.TrimSpace(string(text))})
	}
	return r, nil
}

// find says which server answers at a URL. The client's proxies are not asked: a
// profiler is nobody's business but the server's.
func find(ctx context.Context, o Options) (*server, error) {
	s := &server{url: strings.TrimRight(o.URL, "/"), key: o.Key}
	s.client.Transport = &http.Transport{MaxIdleConnsPerHost: 4, ResponseHeaderTimeout: o.Timeout}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	var models struct {
		Data []struct {
			ID      string `json:"id"`
			OwnedBy string `json:"owned_by"`
		} `json:"data"`
	}
	reply, err := s.call(ctx, http.MethodGet, "/v1/models", nil)
	if err != nil {
		return nil, fmt.Errorf("asking %s which model it serves: %w", s.url, err)
	}
	if json.Unmarshal(reply, &models) != nil || len(models.Data) == 0 {
		return nil, fmt.Errorf("%s has no list of models at /v1/models: it is no SGLang or vLLM server", s.url)
	}
	s.model = models.Data[0].ID
	if s.sglang(ctx) {
		return s, nil
	}
	var v struct {
		Version string `json:"version"`
	}
	if reply, err = s.call(ctx, http.MethodGet, "/version", nil); err == nil && json.Unmarshal(reply, &v) == nil &&
		v.Version != "" || models.Data[0].OwnedBy == "vllm" {
		s.engine, s.version = VLLM, v.Version
		return s, nil
	}
	return nil, fmt.Errorf("%s is neither SGLang (it has no /server_info) nor vLLM (no /version); start the "+
		"profiler yourself, then import the traces", s.url)
}

// sglang asks for what only SGLang has: its arguments.
func (s *server) sglang(ctx context.Context) bool {
	for _, path := range []string{"/server_info", "/get_server_info"} {
		reply, err := s.call(ctx, http.MethodGet, path, nil)
		if err != nil {
			continue
		}
		var info struct {
			Version   string `json:"version"`
			TP        int    `json:"tp_size"`
			DP        int    `json:"dp_size"`
			PP        int    `json:"pp_size"`
			Attention bool   `json:"enable_dp_attention"`
		}
		if json.Unmarshal(reply, &info) != nil || info.TP < 1 {
			continue
		}
		s.engine, s.version = SGLang, info.Version
		s.ranks = info.TP * max(info.PP, 1)
		if !info.Attention {
			s.ranks *= max(info.DP, 1)
		}
		return true
	}
	return false
}

// start starts the profiler.
func (s *server) start(ctx context.Context, o *Options) error {
	body := map[string]any{"max_iterations": o.Steps}
	if s.engine == SGLang {
		body = map[string]any{"output_dir": o.Traces, "num_steps": o.Steps, "activities": []string{"CPU", "GPU"},
			"with_stack": o.Stacks, "record_shapes": o.Stacks, "profile_by_stage": false}
	}
	_, err := s.call(ctx, http.MethodPost, "/start_profile", body)
	var st status
	if errors.As(err, &st) && (st.code == http.StatusNotFound || st.code == http.StatusMethodNotAllowed) {
		return fmt.Errorf("the server has no /start_profile: %s", s.missing(o.Traces))
	}
	if err != nil {
		return fmt.Errorf("starting the profiler: %w", err)
	}
	return nil
}

// missing says what a server without a profiler must be started with.
func (s *server) missing(dir string) string {
	if s.engine == SGLang {
		return fmt.Sprintf("start SGLang with SGLANG_TORCH_PROFILER_DIR=%s, and ask it directly, not through a router",
			dir)
	}
	return fmt.Sprintf(`start vLLM with --profiler-config '{"profiler":"torch","torch_profiler_dir":"%s"}' (0.13 and later) or VLLM_TORCH_PROFILER_DIR=%s (before)`, dir, dir)
}

// stop stops the profiler and returns when the server says that it has.
func (s *server) stop(ctx context.Context) error {
	if _, err := s.call(ctx, http.MethodPost, "/stop_profile", nil); err != nil {
		return fmt.Errorf("stopping the profiler: %w", err)
	}
	return nil
}

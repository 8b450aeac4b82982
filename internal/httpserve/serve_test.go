package httpserve_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"hadrain/internal/httpserve"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func handler(ready error) http.Handler {
	return httpserve.Handler(httpserve.Config{
		Metrics: prometheus.NewRegistry(),
		Ready:   func() error { return ready },
		Status:  func() any { return map[string]int{"schema": 1} },
	})
}

// start serves h until the test ends and returns its address.
func start(t *testing.T, h http.Handler, webConfig string) string {
	t.Helper()
	return startLogging(t, h, webConfig, slog.New(slog.DiscardHandler))
}

func startLogging(t *testing.T, h http.Handler, webConfig string, log *slog.Logger) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error)
	go func() {
		served <- httpserve.Serve(ctx, l, h, webConfig, log)
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	return l.Addr().String()
}

func do(t *testing.T, method, url string, set func(*http.Request)) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if set != nil {
		set(req)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func TestPaths(t *testing.T) {
	addr := start(t, handler(errors.New("no state yet")), "")
	for _, tc := range []struct {
		method, path string
		code         int
		body         string
	}{
		{"GET", "/healthz", 200, "ok\n"},
		{"GET", "/readyz", 503, "no state yet\n"},
		{"GET", "/status.json", 200, "{\n  \"schema\": 1\n}\n"},
		{"GET", "/metrics", 200, ""},
		{"GET", "/debug/pprof/cmdline", 200, ""},
		{"POST", "/healthz", 405, ""},
		{"GET", "/nope", 404, ""},
	} {
		code, body := do(t, tc.method, "http://"+addr+tc.path, nil)
		if code != tc.code || tc.body != "" && body != tc.body {
			t.Errorf("%s %s = %d %q, want %d %q", tc.method, tc.path, code, body, tc.code, tc.body)
		}
	}
}

func TestProfilesAreForThisMachine(t *testing.T) {
	for addr, want := range map[string]int{"192.0.2.1:99": 403, "[2001:db8::1]:9": 403, "[::1]:9": 200, "@": 200, "junk": 403} {
		req, err := http.NewRequestWithContext(t.Context(), "GET", "/debug/pprof/cmdline", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.RemoteAddr = addr
		w := &recorder{}
		handler(nil).ServeHTTP(w, req)
		if w.code != want {
			t.Errorf("profile for %s: %d, want %d", addr, w.code, want)
		}
	}
}

type recorder struct {
	code   int
	header http.Header
}

func (r *recorder) Header() http.Header {
	if r.header == nil {
		r.header = http.Header{}
	}
	return r.header
}

func (r *recorder) WriteHeader(code int) { r.code = code }

func (r *recorder) Write(b []byte) (int, error) {
	if r.code == 0 {
		r.code = 200
	}
	return len(b), nil
}

func TestBasicAuth(t *testing.T) {
	// The hash is that of "secret".
	config := filepath.Join(t.TempDir(), "web.yml")
	text := "basic_auth_users:\n  ops: $2a$05$ZVD/UORRKmxG3KguAuC4P.JbDeH757qHIT7.9XEsTsEjGCT4CRPiC\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := httpserve.Check(config); err != nil {
		t.Fatal(err)
	}
	addr := start(t, handler(nil), config)
	for path, open := range map[string]int{"/metrics": 200, "/status.json": 200, "/": 200, "/healthz": 200, "/debug/pprof/cmdline": 200} {
		for password, want := range map[string]int{"": 401, "wrong": 401, "secret": open} {
			code, _ := do(t, "GET", "http://"+addr+path, func(r *http.Request) {
				if password != "" {
					r.SetBasicAuth("ops", password)
				}
			})
			if code != want {
				t.Errorf("%s with the password %q: %d, want %d", path, password, code, want)
			}
		}
	}
	if code, _ := do(t, "GET", "http://ops:secret@"+addr+"/metrics", nil); code != 200 {
		t.Errorf("with the password: %d, want 200", code)
	}
}

func TestCheckRefusesBrokenFile(t *testing.T) {
	dir := t.TempDir()
	broken, pipe := filepath.Join(dir, "web.yml"), filepath.Join(dir, "pipe")
	err := errors.Join(os.WriteFile(broken, []byte("tls_server_config: 7\n"), 0o600), syscall.Mkfifo(pipe, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	for _, config := range []string{broken, pipe, dir, filepath.Join(dir, "missing")} {
		if err := httpserve.Check(config); err == nil || !strings.Contains(err.Error(), config) {
			t.Errorf("Check = %v, want an error that names %s", err, config)
		}
	}
}

func TestHealthzOfADaemonThatHangs(t *testing.T) {
	addr := start(t, httpserve.Handler(httpserve.Config{
		Metrics: prometheus.NewRegistry(),
		Alive:   func() error { return errors.New("it hangs") },
		Ready:   func() error { return nil },
	}), "")
	if code, body := do(t, "GET", "http://"+addr+"/healthz", nil); code != 503 || body != "it hangs\n" {
		t.Errorf("GET /healthz = %d %q, want 503 and why", code, body)
	}
}

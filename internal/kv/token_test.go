package kv_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"hadrain/internal/kv"
)

func TestTokenIsReadForEachRequest(t *testing.T) {
	s := &seen{}
	server := httptest.NewServer(s)
	defer server.Close()
	file := filepath.Join(t.TempDir(), "token")
	client, err := kv.Config{Address: server.URL, TokenFile: file, Token: "beaten"}.Client()
	if err != nil {
		t.Fatalf("Client() without a token file yet: %v", err)
	}
	for _, tc := range []struct{ content, want string }{{"one\n", "one"}, {" two ", "two"}, {"\n", ""}, {"three", "three"}} {
		s.requests = nil
		if err := os.WriteFile(file, []byte(tc.content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, err := client.KV().Get("a", nil)
		if tc.want == "" {
			if err == nil || !strings.Contains(err.Error(), file) || len(s.requests) > 0 {
				t.Errorf("empty token file: %v after %d requests, want an error that names it, and no request", err, len(s.requests))
			}
			continue
		}
		if err != nil || s.requests[0].Header.Get("X-Consul-Token") != tc.want {
			t.Errorf("token file %q: %v, sent %q, want %q", tc.content, err, s.requests[0].Header, tc.want)
		}
	}
}

// What is no token is not sent: not as a blank one, for which Consul hides that
// it filtered the answer, and not as two lines, which no header can carry.
func TestTokenThatIsNone(t *testing.T) {
	s := &seen{}
	server := httptest.NewServer(s)
	defer server.Close()
	for value, want := range map[string]string{" ": kv.Anonymous, "\n": kv.Anonymous, " secret\n": "secret"} {
		t.Setenv("CONSUL_HTTP_TOKEN", value)
		s.requests = nil
		if err := get(t, kv.Config{Address: server.URL}); err != nil {
			t.Errorf("token %q: %v", value, err)
		} else if got := s.requests[0].Header.Get("X-Consul-Token"); got != want {
			t.Errorf("token %q was sent as %q, want %q", value, got, want)
		}
	}
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("sec\nret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CONSUL_HTTP_TOKEN", "sec\nret")
	for name, cfg := range map[string]kv.Config{file: {TokenFile: file}, "$CONSUL_HTTP_TOKEN": {}} {
		token, err := cfg.ReadToken()
		if _, ok := errors.AsType[*kv.TokenError](err); !ok || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "ret\n") {
			t.Errorf("ReadToken() of %s = %q, %v, want a TokenError without the token", name, token, err)
		}
	}
}

func TestNoToken(t *testing.T) {
	s := &seen{}
	server := httptest.NewServer(s)
	defer server.Close()
	if err := get(t, kv.Config{Address: server.URL}); err != nil {
		t.Fatal(err)
	}
	if got := s.requests[0].Header.Get("X-Consul-Token"); got != kv.Anonymous {
		t.Errorf("without a token %q was sent, want %q", got, kv.Anonymous)
	}
}

// What cannot be read anew for each request is refused at once: a pipe would hold
// the reader past its deadline and past SIGTERM, and a device never ends.
func TestTokenFileThatIsNone(t *testing.T) {
	dir := t.TempDir()
	pipe, long := filepath.Join(dir, "pipe"), filepath.Join(dir, "long")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(long, bytes.Repeat([]byte("a"), 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{pipe: "not a regular file", "/dev/zero": "not a regular file", dir: "not a regular file", long: "larger than"} {
		got := make(chan error, 1)
		go func() {
			_, err := kv.Config{TokenFile: file}.ReadToken()
			got <- err
		}()
		select {
		case err := <-got:
			if _, ok := errors.AsType[*kv.TokenError](err); !ok || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), want) {
				t.Errorf("ReadToken() of %s: %v, want a TokenError that says %q", file, err, want)
			}
		case <-time.After(10 * time.Second):
			t.Errorf("ReadToken() of %s does not return", file)
		}
	}
	for _, file := range []string{"/dev/zero", long} {
		if _, err := (kv.Config{TokenFile: file}).ReadOnce().ReadToken(); err == nil || !strings.Contains(err.Error(), "longer than") {
			t.Errorf("ReadToken() of %s, once: %v, want it refused", file, err)
		}
	}
}

// A command whose files are pipes, as of a shell's <(COMMAND), makes more than
// one request.
func TestReadOnce(t *testing.T) {
	consul, c := secureConsul(t)
	cert, key := c.client(time.Now().Add(time.Hour))
	cfg := kv.Config{
		Address: consul.HTTPSAddr(), TokenFile: pipe(t, []byte(kv.Anonymous)),
		CAFile: pipe(t, c.authority.PEM()), CertFile: pipe(t, content(t, cert)), KeyFile: pipe(t, content(t, key)),
	}
	client, err := cfg.ReadOnce().Client()
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		reach(t, "with pipes", client, "")
	}
}

func content(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// pipe returns the name of a pipe that holds data, once.
func pipe(t *testing.T, data []byte) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	if _, err := w.Write(data); err != nil { // it fits
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("/proc/self/fd/%d", r.Fd())
}

package kv_test

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"hadrain/internal/kv"
)

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

// The same of certificates, which are read anew too.
func TestCertificatesThatAreNone(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, cfg := range []kv.Config{{CAFile: pipe}, {CertFile: pipe, KeyFile: os.DevNull}, {CertFile: os.DevNull, KeyFile: pipe}} {
		got := make(chan error, 1)
		go func() {
			_, err := cfg.Client()
			got <- err
		}()
		select {
		case err := <-got:
			if err == nil || !strings.Contains(err.Error(), "not a regular file") {
				t.Errorf("Client() with %+v: %v, want it refused", cfg, err)
			}
		case <-time.After(10 * time.Second):
			t.Errorf("Client() with %+v does not return", cfg)
		}
	}
}

// A server that goes away while it holds a request has not answered.
func TestConnectionClosed(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer server.Close()
	err := readOnce(t, kv.Config{Address: server.URL})
	check(t, err, kv.Transport, "closed without an answer")
	if err != nil && err.Refused {
		t.Error("it counts as an answer")
	}
}

// An error's text is not held in memory at whatever length.
func TestLongError(t *testing.T) {
	const length = 32 << 20
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadGateway)
		for part := bytes.Repeat([]byte("bad gateway "), 1<<12); ; {
			if _, err := w.Write(part); err != nil {
				return
			}
		}
	}))
	defer server.Close()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := readOnce(t, kv.Config{Address: server.URL, MaxBytes: length})
	runtime.ReadMemStats(&after)
	check(t, err, "http_502", `"bad gateway bad`)
	if used := after.TotalAlloc - before.TotalAlloc; used > length/8 {
		t.Errorf("an endless error took %d bytes", used)
	}
}

// Nor is it put into the log and the status at whatever length.
func TestLongNonsense(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = conn.Write(append(bytes.Repeat([]byte("SSH-2.0-elsewhere-"), 1<<12), "\r\n"...)) // whoever asks may be gone
	}))
	defer server.Close()
	err := readOnce(t, kv.Config{Address: server.URL})
	check(t, err, kv.Transport, "SSH-2.0-elsewhere")
	if err != nil && len(err.Message) > 1000 {
		t.Errorf("a message of %d bytes", len(err.Message))
	}
}

// Who cannot connect is told what to give.
func TestTransportAdvice(t *testing.T) {
	secure, plain := httptest.NewTLSServer(&seen{}), httptest.NewServer(&seen{})
	defer secure.Close()
	defer plain.Close()
	secure.Config.ErrorLog = nil
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, certificate(secure), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		cfg  kv.Config
		want string
	}{
		{kv.Config{Address: secure.URL}, "--consul-ca-file"},
		{kv.Config{Address: secure.URL, CAFile: ca, ServerName: "consul.invalid"}, "--consul-tls-server-name"},
		{kv.Config{Address: strings.Replace(plain.URL, "http:", "https:", 1)}, "write http://"},
	} {
		check(t, readOnce(t, tc.cfg), kv.Transport, tc.want)
	}
	consul, c := secureConsul(t)
	check(t, readOnce(t, kv.Config{Address: consul.HTTPSAddr(), CAFile: filepath.Join(c.dir, "ca.pem")}), kv.Transport, "--consul-client-cert")
	check(t, readOnce(t, kv.Config{Address: strings.Replace(consul.HTTPSAddr(), "https:", "http:", 1)}), "http_400", "write https://")
}

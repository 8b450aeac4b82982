package kv_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"hadrain/internal/kv"
)

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

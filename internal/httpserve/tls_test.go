package httpserve_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"hadrain/internal/testpeer"
)

func TestTLS(t *testing.T) {
	authority, dir := testpeer.NewAuthority(t), t.TempDir()
	cert, key := authority.Issue(t, "daemon", time.Now().Add(time.Hour))
	for name, data := range map[string][]byte{
		"cert": cert, "key": key, "web.yml": fmt.Appendf(nil, "tls_server_config:\n  cert_file: %[1]s/cert\n  key_file: %[1]s/key\n", dir),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var log testpeer.Output
	addr := startLogging(t, handler(nil), filepath.Join(dir, "web.yml"), slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority.PEM())
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: testpeer.Timeout(t)}
	for _, path := range []string{"/healthz", "/status.json"} {
		resp, err := client.Get("https://" + addr + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close() // read to no purpose
		if resp.StatusCode != 200 || resp.TLS == nil {
			t.Errorf("https %s: %d", path, resp.StatusCode)
		}
	}
	if code, _ := do(t, "GET", "http://"+addr+"/healthz", nil); code != 400 {
		t.Errorf("without TLS: %d, want 400", code)
	}
	// Peers who do not even shake hands keep nobody out.
	for range 40 {
		ask(t, addr, "/healthz")
	}
	transport.CloseIdleConnections()
	if resp, err := client.Get("https://" + addr + "/healthz"); err != nil {
		t.Errorf("beside them: %v", err)
	} else {
		_ = resp.Body.Close() // read to no purpose
	}
	if n := log.Count("level=DEBUG"); n == 0 || n != log.Count("level=") {
		t.Errorf("what goes wrong with one peer is to be seen by those who look for it only:\n%s", &log)
	}
}

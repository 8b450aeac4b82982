package kv_test

import (
	"encoding/pem"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hadrain/internal/kv"
)

// seen records the requests to a server that answers as an empty Consul.
type seen struct{ requests []*http.Request }

func (s *seen) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.requests = append(s.requests, r)
	w.WriteHeader(http.StatusNotFound)
}

// get makes one request by the client of cfg.
func get(t *testing.T, cfg kv.Config) error {
	t.Helper()
	client, err := cfg.Client()
	if err != nil {
		t.Fatalf("Client(): %v", err)
	}
	_, _, err = client.KV().Get("a", nil)
	return err
}

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

func TestEnvironment(t *testing.T) {
	s := &seen{}
	server := httptest.NewServer(s)
	defer server.Close()
	for name, value := range map[string]string{
		"CONSUL_HTTP_ADDR":  strings.Replace(server.URL, "http://", "http://carl:secret@", 1),
		"CONSUL_HTTP_TOKEN": "from-env", "CONSUL_NAMESPACE": "ns1", "CONSUL_PARTITION": "p1",
		// Whoever answers there is not Consul.
		"HTTP_PROXY": "http://127.0.0.1:9", "http_proxy": "http://127.0.0.1:9", "VAULT_TOKEN": "x",
	} {
		t.Setenv(name, value)
	}
	var cfg kv.Config
	if err := get(t, cfg); err != nil {
		t.Fatalf("Get: %v", err)
	}
	r := s.requests[0]
	user, password, _ := r.BasicAuth()
	got := strings.Join([]string{r.Header.Get("X-Consul-Token"), r.URL.Query().Get("ns"), r.URL.Query().Get("partition"), user, password}, " ")
	if want := "from-env ns1 p1 carl secret"; got != want {
		t.Errorf("request with %q, want %q", got, want)
	}
	if got := cfg.Shown(); got != server.URL {
		t.Errorf("Shown() = %q, want %q without the password", got, server.URL)
	}
	cfg = kv.Config{Token: "from-field", Namespace: "ns2"}
	if err := get(t, cfg); err != nil {
		t.Fatalf("Get: %v", err)
	}
	if r := s.requests[1]; r.Header.Get("X-Consul-Token") != "from-field" || r.URL.Query().Get("ns") != "ns2" {
		t.Errorf("request %s with %q: fields must beat variables", r.URL, r.Header)
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

func TestBadVariable(t *testing.T) {
	t.Setenv("CONSUL_HTTP_SSL_VERIFY", "yes please")
	_, err := kv.Config{}.Client()
	for what, err := range map[string]error{"Client": err, "Check": kv.Config{}.Check()} {
		if err == nil || !strings.Contains(err.Error(), "CONSUL_HTTP_SSL_VERIFY") {
			t.Errorf("%s() = %v, want an error that names the variable", what, err)
		}
	}
}

// Each is a mistake in flags or variables, which a restart does not heal.
func TestHalfAClientCertificate(t *testing.T) {
	for _, tc := range []struct{ cert, key, want string }{
		{"a.pem", "", "a.pem: without its key: give it with --consul-client-key"},
		{"", "a.key", "a.key: without the certificate: give it with --consul-client-cert"},
	} {
		t.Setenv("CONSUL_CLIENT_CERT", "")
		t.Setenv("CONSUL_CLIENT_KEY", "")
		if err := (kv.Config{CertFile: tc.cert, KeyFile: tc.key}).Check(); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("Check() of flags = %v, want %q", err, tc.want)
		}
		t.Setenv("CONSUL_CLIENT_CERT", tc.cert)
		t.Setenv("CONSUL_CLIENT_KEY", tc.key)
		if err := (kv.Config{}).Check(); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("Check() of variables = %v, want %q", err, tc.want)
		}
	}
}

func TestUnixSocket(t *testing.T) {
	s := &seen{}
	dir, err := os.MkdirTemp("", "kv")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(s)
	server.Listener = l
	server.Start()
	defer server.Close()
	cfg := kv.Config{Address: "unix://" + l.Addr().String(), Token: "t"}
	if err := get(t, cfg); err != nil {
		t.Fatal(err)
	}
	if got := s.requests[0].Header.Get("X-Consul-Token"); got != "t" {
		t.Errorf("over a unix socket the token was %q, want t", got)
	}
	if got := cfg.Shown(); got != cfg.Address {
		t.Errorf("Shown() = %q, want %q", got, cfg.Address)
	}
}

func TestTLS(t *testing.T) {
	server := httptest.NewTLSServer(&seen{})
	defer server.Close()
	server.Config.ErrorLog = nil
	if err := get(t, kv.Config{Address: server.URL}); err == nil {
		t.Error("a certificate of an unknown authority was accepted")
	}
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, certificate(server), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := get(t, kv.Config{Address: server.URL, CAFile: ca}); err != nil {
		t.Errorf("with its authority: %v", err)
	}
	if _, err := (kv.Config{Address: server.URL, CertFile: "only-one"}).Client(); err == nil {
		t.Error("a client certificate without its key was accepted")
	}
}

func certificate(server *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

func TestRoot(t *testing.T) {
	for root, ok := range map[string]bool{
		"hadrain": true, "gitlab-haproxy-agent": true, "a/b.c/d_e": true,
		"": false, "/a": false, "a/": false, "a//b": false, "a@dc": false, "a?ns=b": false, "a b": false, "a\n": false,
		"..": false, ".": false, "a/../b": false, "a/.": false, "...": true, ".a": true,
	} {
		if err := kv.CheckRoot(root); (err == nil) != ok {
			t.Errorf("CheckRoot(%q) = %v", root, err)
		}
	}
}

func TestSentinel(t *testing.T) {
	if got, err := kv.ParseSentinel(kv.FormatSentinel(idA) + "\n"); err != nil || got != idA {
		t.Errorf("ParseSentinel(FormatSentinel(%q)) = %q, %v", idA, got, err)
	}
	for _, bad := range []string{"", "v1", "v1 id=", "v2 id=" + idA, "v1 id=" + idA + " x", "v1 id=XYZ"} {
		if got, err := kv.ParseSentinel(bad); err == nil {
			t.Errorf("ParseSentinel(%q) = %q, want an error", bad, got)
		}
	}
}

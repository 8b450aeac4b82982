package kv_test

import (
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

func TestBadVariable(t *testing.T) {
	t.Setenv("CONSUL_HTTP_SSL_VERIFY", "yes please")
	_, err := kv.Config{}.Client()
	for what, err := range map[string]error{"Client": err, "Check": kv.Config{}.Check()} {
		if err == nil || !strings.Contains(err.Error(), "CONSUL_HTTP_SSL_VERIFY") {
			t.Errorf("%s() = %v, want an error that names the variable", what, err)
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

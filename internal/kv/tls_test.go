package kv_test

import (
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	consulapi "github.com/hashicorp/consul/api"

	"hadrain/internal/kv"
	"hadrain/internal/testpeer"
)

// certificates are the files of a Consul that wants to see certificates.
type certificates struct {
	t         *testing.T
	authority *testpeer.Authority
	dir       string
}

func (c *certificates) write(name string, data []byte) (path string) {
	c.t.Helper()
	path = filepath.Join(c.dir, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		c.t.Fatal(err)
	}
	return path
}

// client writes a client's certificate over the one before.
func (c *certificates) client(until time.Time) (certFile, keyFile string) {
	cert, key := c.authority.Issue(c.t, "load-balancer", until)
	return c.write("client.pem", cert), c.write("client.key", key)
}

// secureConsul starts a Consul that refuses clients without a certificate of
// the authority.
func secureConsul(t *testing.T) (*testpeer.ConsulServer, *certificates) {
	t.Helper()
	c := &certificates{t: t, authority: testpeer.NewAuthority(t), dir: t.TempDir()}
	cert, key := c.authority.Issue(t, "consul.example", time.Now().Add(time.Hour))
	consul := testpeer.Consul(t, testpeer.ConsulConfig{HTTPS: true, HCL: fmt.Sprintf(
		"tls { https { verify_incoming = true\n ca_file = %q\n cert_file = %q\n key_file = %q } }",
		c.write("ca.pem", c.authority.PEM()), c.write("server.pem", cert), c.write("server.key", key))})
	return consul, c
}

// reach makes one request and wants an error with want, or none for "".
func reach(t *testing.T, what string, client *consulapi.Client, want string) {
	t.Helper()
	_, _, err := client.KV().Get("a", nil)
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("%s: %v, want %q", what, err, want)
	}
}

func TestCertificates(t *testing.T) {
	consul, c := secureConsul(t)
	cert, key := c.client(time.Now().Add(time.Hour))
	good := kv.Config{Address: consul.HTTPSAddr(), CAFile: filepath.Join(c.dir, "ca.pem"), CertFile: cert, KeyFile: key}
	with := func(change func(*kv.Config)) kv.Config { cfg := good; change(&cfg); return cfg }
	authorities := t.TempDir()
	if err := os.WriteFile(filepath.Join(authorities, "ca.pem"), c.authority.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	stranger := testpeer.NewAuthority(t)
	other := c.write("other.pem", stranger.PEM())
	_, otherKey := stranger.Issue(t, "load-balancer", time.Now().Add(time.Hour))
	if _, err := with(func(cfg *kv.Config) { cfg.KeyFile = c.write("other.key", otherKey) }).Client(); err == nil ||
		!strings.Contains(err.Error(), cert+" with its key "+filepath.Join(c.dir, "other.key")) {
		t.Errorf("a key of another certificate: %v, want an error that names both files", err)
	}
	for name, tc := range map[string]struct {
		cfg  kv.Config
		want string
	}{
		"good":                  {good, ""},
		"a directory":           {with(func(c *kv.Config) { c.CAFile, c.CAPath = "", authorities }), ""},
		"a name":                {with(func(c *kv.Config) { c.ServerName = "consul.example" }), ""},
		"another name":          {with(func(c *kv.Config) { c.ServerName = "other.example" }), "not other.example"},
		"another authority":     {with(func(c *kv.Config) { c.CAFile = other }), "certificate signed by unknown authority"},
		"no client certificate": {with(func(c *kv.Config) { c.CertFile, c.KeyFile = "", "" }), "tls: "},
	} {
		client, err := tc.cfg.Client()
		if err != nil {
			t.Fatalf("%s: Client(): %v", name, err)
		}
		reach(t, name, client, tc.want)
	}
	// The same by the variables of Consul's own tools.
	for name, value := range map[string]string{
		"CONSUL_HTTP_ADDR": strings.TrimPrefix(consul.HTTPSAddr(), "https://"), "CONSUL_HTTP_SSL": "true",
		"CONSUL_CACERT": good.CAFile, "CONSUL_CLIENT_CERT": cert, "CONSUL_CLIENT_KEY": key, "CONSUL_TLS_SERVER_NAME": "consul.example",
	} {
		t.Setenv(name, value)
	}
	client, err := kv.Config{}.Client()
	if err != nil {
		t.Fatal(err)
	}
	reach(t, "variables", client, "")
}

// A renewed client certificate is used as soon as it is there; a renewed
// authority after a reload, and a broken one never.
func TestCertificatesAreRenewed(t *testing.T) {
	consul, c := secureConsul(t)
	cert, key := c.client(time.Now().Add(-time.Minute))
	ca := c.write("mine.pem", c.authority.PEM())
	client, reload, err := kv.Config{Address: consul.HTTPSAddr(), CAFile: ca, CertFile: cert, KeyFile: key}.Reloadable()
	if err != nil {
		t.Fatal(err)
	}
	reach(t, "expired", client, "expired certificate")
	c.client(time.Now().Add(time.Hour))
	reach(t, "renewed", client, "")

	c.write("mine.pem", []byte("nonsense"))
	if err := reload(); err == nil || !strings.Contains(err.Error(), ca) {
		t.Errorf("reload() of nonsense = %v, want an error that names the file", err)
	}
	reach(t, "a broken authority", client, "")
	c.write("mine.pem", testpeer.NewAuthority(t).PEM())
	reach(t, "before the reload", client, "")
	if err := reload(); err != nil {
		t.Errorf("reload() = %v", err)
	}
	reach(t, "another authority", client, "certificate signed by unknown authority")
	c.write("mine.pem", c.authority.PEM())
	if err := reload(); err != nil {
		t.Errorf("reload() = %v", err)
	}
	reach(t, "the right authority", client, "")
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

// What cannot be read anew is refused at once, as of a token.
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

package kv_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	consulapi "github.com/hashicorp/consul/api"

	"hadrain/internal/kv"
)

func TestAddress(t *testing.T) {
	for text, want := range map[string]struct {
		shown string
		bad   string // in the error; "": none
	}{
		"localhost:8500":                      {"localhost:8500", ""},
		"consul":                              {"consul", ""},
		"HTTP://Consul:8500":                  {"http://Consul:8500", ""},
		"Https://user:p@consul:8501/prefix":   {"https://consul:8501/prefix", ""},
		"http://127.0.0.1:8500/":              {"http://127.0.0.1:8500", ""},
		"127.0.0.1:8500//":                    {"127.0.0.1:8500", ""},
		"https://consul/up/":                  {"https://consul/up", ""},
		"consul:8500/up":                      {"consul:8500/up", "write http:// or https:// before it"},
		"http://consul/?dc=a":                 {"http://consul/?dc=a", "at most a path"},
		"consul:8500#a":                       {"consul:8500#a", "at most a path"},
		"/":                                   {"", "want host:port"},
		"UNIX:///run/consul.sock":             {"unix:///run/consul.sock", ""},
		"user:secret@consul:8500":             {"consul:8500", ""},
		"http://user:sec@ret@consul":          {"http://consul", ""},
		"http://user:se/cret@consul:8500":     {"http://consul:8500", "write %2F for it"},
		"user:se/cret@consul:8500":            {"consul:8500", "write %2F for it"},
		"user:se://cret@consul:8500":          {"consul:8500", "write %2F for it"},
		"http://user:s@e/cret@consul:8500/up": {"http://consul:8500/up", "write %2F for it"},
		"ftp://user:secret@consul":            {"ftp://consul", "want host:port"},
		"ftp://user:se/cret@consul":           {"ftp://consul", "write %2F for it"},
		"http://":                             {"http://", "want host:port"},
		"http:///v1":                          {"http:///v1", "want host:port"},
		"http://user:secret@":                 {"http://", "want host:port"},
		"unix://":                             {"unix://", "want host:port"},
		"unix:///run/my consul.sock":          {"unix:///run/my consul.sock", ""},
		" consul:8500":                        {" consul:8500", "white space"},
		"consul:8500\n":                       {"consul:8500\n", "white space"},
	} {
		cfg := kv.Config{Address: text}
		if got := cfg.Shown(); got != want.shown {
			t.Errorf("%s is shown as %s, want %s", text, got, want.shown)
		}
		_, err := cfg.Client()
		switch bad := cfg.Check(); {
		case want.bad == "" && (err != nil || bad != nil):
			t.Errorf("%s: %v, %v, want it taken", text, err, bad)
		case want.bad != "" && (err == nil || bad == nil || err.Error() != bad.Error() || !strings.Contains(bad.Error(), want.bad)):
			t.Errorf("%s: %v, %v, want %q", text, err, bad, want.bad)
		case want.bad != "" && (strings.Contains(bad.Error(), "cret") || strings.Contains(bad.Error(), "user:")):
			t.Errorf("%s: the error shows a secret: %v", text, bad)
		}
	}
}

// A password may hold anything, escaped as in every URL.
func TestAddressWithEscapes(t *testing.T) {
	s := &seen{}
	server := httptest.NewServer(s)
	defer server.Close()
	for _, user := range []string{"c%40rl:a%2Fb%3A%25", "c@rl:a%2fb:%25"} {
		if err := get(t, kv.Config{Address: strings.Replace(server.URL, "http://", "HTTP://"+user+"@", 1)}); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range s.requests {
		if user, password, _ := r.BasicAuth(); user != "c@rl" || password != "a/b:%" {
			t.Errorf("user %q, password %q", user, password)
		}
	}
}

// Without a port an address means what it means to Consul's own tools, and
// whoever meant an agent is told so.
func TestPortHint(t *testing.T) {
	failures := map[string]kv.ListFunc{
		"refused": func(context.Context, uint64) (*kv.Answer, error) { return nil, errors.New("connection refused") },
		"late":    func(context.Context, uint64) (*kv.Answer, error) { return nil, context.DeadlineExceeded },
		"other": func(context.Context, uint64) (*kv.Answer, error) {
			return &kv.Answer{Meta: consulapi.QueryMeta{KnownLeader: true}}, nil
		},
	}
	for name, list := range failures {
		for addr, want := range map[string]string{
			"localhost":              "; without a port that is port 80: for an agent write localhost:8500",
			"http://consul/prefix":   "; without a port that is port 80: for an agent write consul:8500",
			"https://[::1]":          "; without a port that is port 443: for an agent write https://[::1]:8501",
			"localhost:8500":         "",
			"https://consul:8501":    "",
			"unix:///run/consul.soc": "",
		} {
			w := startWatch(t, kv.WatchConfig{Root: "hadrain", Address: addr, List: list})
			<-w.Changed()
			message := w.Health().Failure.Message
			if hinted := strings.Contains(message, "without a port"); !strings.HasSuffix(message, want) || hinted != (want != "") || !strings.Contains(message, addr) {
				t.Errorf("%s at %s: %q, want %q at its end", name, addr, message, want)
			}
		}
	}
	t.Setenv("CONSUL_HTTP_SSL", "true")
	w := startWatch(t, kv.WatchConfig{Root: "hadrain", Address: "localhost", List: failures["refused"]})
	<-w.Changed()
	if message := w.Health().Failure.Message; !strings.HasSuffix(message, "write https://localhost:8501") {
		t.Errorf("with CONSUL_HTTP_SSL: %q", message)
	}
}

// A slash at the end is how addresses are copied out of a browser; a path is that
// of a proxy in front of Consul.
func TestAddressWithPath(t *testing.T) {
	s := &seen{}
	server := httptest.NewServer(s)
	defer server.Close()
	for suffix, want := range map[string]string{"/": "/v1/", "//": "/v1/", "/up": "/up/v1/", "/up/": "/up/v1/"} {
		s.requests = nil
		if err := get(t, kv.Config{Address: server.URL + suffix}); err != nil {
			t.Fatal(err)
		}
		if got := s.requests[0].URL.Path; !strings.HasPrefix(got, want) {
			t.Errorf("%s: asked for %s, want %s…", suffix, got, want)
		}
	}
}

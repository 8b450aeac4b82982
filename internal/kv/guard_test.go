package kv_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hadrain/internal/kv"
)

// sentinelJSON is the sentinel's pair as Consul writes it: the value in base64.
const sentinelJSON = `{"Key":"hadrain/state/.hadrain","Value":"djEgaWQ9NmYxYzdjMGEtNGQ5ZS00YzY1LThmMGUtMmIxYzlhN2Q1ZTQz","ModifyIndex":5}`

// TestRefusals has every kind of answer that a watch must not believe, and the
// word and the advice that people get.
func TestRefusals(t *testing.T) {
	// Without X-Consul-LastContact the client library reads no further header.
	good := http.Header{"X-Consul-Index": {"5"}, "X-Consul-Knownleader": {"true"}, "X-Consul-Lastcontact": {"0"}}
	with := func(key, value string) http.Header {
		h := good.Clone()
		h.Set(key, value)
		return h
	}
	pair := func(key string) string { return `,{"Key":"hadrain/state/` + key + `","Value":"cmVhZHk="}` }
	for _, tc := range []struct {
		name   string
		code   int
		header http.Header
		body   string
		config kv.Config
		reason string // "": accepted
		advice string
	}{
		{"good", 200, good, "[" + sentinelJSON + "]", kv.Config{}, "", ""},
		{"plain 404", 404, nil, "not found", kv.Config{}, kv.NotConsul, "check the address"},
		{"html with 200", 200, nil, "<html>", kv.Config{}, kv.Malformed, "no JSON of Consul"},
		{"no index", 200, http.Header{"X-Consul-Knownleader": {"true"}}, "[]", kv.Config{}, kv.NotConsul, "X-Consul-Index"},
		{"null", 200, with("X-Consul-Knownleader", ""), "null", kv.Config{}, kv.NoLeader, "leader"},
		{"no leader", 200, with("X-Consul-Knownleader", "false"), "[" + sentinelJSON + "]", kv.Config{}, kv.NoLeader, "leader"},
		{"404 of an empty prefix", 404, good, "", kv.Config{}, kv.NoSentinel, "hadrain init"},
		{"keys without the sentinel", 200, good, `[{"Key":"hadrain/state/a","Value":"cmVhZHk="}]`, kv.Config{}, kv.NoSentinel, "1 key under hadrain/state/, "},
		{"filtered", 200, with("X-Consul-Results-Filtered-By-Acls", "true"), "[" + sentinelJSON + "]", kv.Config{Token: "t"}, kv.ACLFiltered, "key_prefix"},
		{"filtered, no token", 404, with("X-Consul-Results-Filtered-By-Acls", "true"), "", kv.Config{}, kv.ACLAnonymous, "--token-file"},
		{"default deny, no token", 404, with("X-Consul-Default-Acl-Policy", "deny"), "", kv.Config{}, kv.ACLAnonymous, "--token-file"},
		{"truncated", 200, good, "[" + sentinelJSON, kv.Config{}, kv.Malformed, "cut short"},
		{"text after it", 200, good, "[" + sentinelJSON + "]\n \n", kv.Config{}, "", ""},
		{"a page after it", 200, good, "[" + sentinelJSON + "]\n<html>", kv.Config{}, kv.Malformed, "text follows the list"},
		{"two lists", 200, good, "[" + sentinelJSON + "][]", kv.Config{}, kv.Malformed, "text follows the list"},
		{"a number", 200, good, "17", kv.Config{}, kv.Malformed, "no JSON of Consul"},
		{"a text", 200, good, `"a\nlevel=INFO"`, kv.Config{}, kv.Malformed, "cannot unmarshal string into"},
		{"a pair that is a list", 200, good, "[" + sentinelJSON + ",[]]", kv.Config{}, kv.Malformed, "no JSON of Consul"},
		{"no comma", 200, good, "[" + sentinelJSON + sentinelJSON + "]", kv.Config{}, kv.Malformed, "no JSON of Consul"},
		{"another bracket", 200, good, "[" + sentinelJSON + "}", kv.Config{}, kv.Malformed, "no JSON of Consul"},
		{"value in no base64", 200, good, `[{"Key":"hadrain/state/a","Value":"!!!"}]`, kv.Config{}, kv.Malformed, "no JSON of Consul"},
		{"null pair", 200, good, "[null]", kv.Config{}, kv.Malformed, "no Consul"},
		{"foreign key", 200, good, `[{"Key":"other/a"}]`, kv.Config{}, kv.Malformed, "no Consul"},
		{"a key twice", 200, good, "[" + sentinelJSON + pair("b") + pair("a") + pair("b") + "]", kv.Config{}, kv.Malformed, "hadrain/state/b twice"},
		{"a line twice", 200, good, "[" + sentinelJSON + pair(`b\nlevel=INFO`) + pair(`b\nlevel=INFO`) + "]", kv.Config{}, kv.Malformed, `hadrain/state/b\nlevel=INFO twice`},
		{"the sentinel twice", 200, good, "[" + sentinelJSON + "," + sentinelJSON + "]", kv.Config{}, kv.Malformed, "twice"},
		{"twins in no UTF-8", 200, good, "[" + sentinelJSON + pair("a\xfe") + pair("a\xff") + "]", kv.Config{}, "", ""},
		{"not sorted", 200, good, "[" + sentinelJSON + pair("b") + pair("a") + "]", kv.Config{}, "", ""},
		{"an object", 200, good, `{"a":1}`, kv.Config{}, kv.Malformed, "no JSON of Consul"},
		{"bad sentinel", 200, good, `[{"Key":"hadrain/state/.hadrain","Value":"djI="}]`, kv.Config{}, kv.Malformed, "--id"},
		{"too large", 200, good, "[" + sentinelJSON + "]", kv.Config{MaxBytes: 20}, kv.TooLarge, "--max-bytes"},
		{"as many keys as allowed", 200, good, "[" + sentinelJSON + pair("a") + pair("b") + pair("c") + pair("d") + pair("e") + "]", kv.Config{}, "", ""},
		{"one key too many", 200, good, "[" + sentinelJSON + pair("a") + pair("b") + pair("c") + pair("d") + pair("e") + pair("f") + "]", kv.Config{}, kv.TooManyKeys, "6 keys under hadrain/state/ besides the sentinel, more than --max-keys 5"},
		{"unknown token", 403, nil, "ACL not found", kv.Config{}, "http_403", "unknown, deleted or expired"},
		{"no list", 403, nil, "Permission denied: token lacks permission 'key:list'", kv.Config{}, "http_403", `policy "list"`},
		{"no leader, 500", 500, nil, "No cluster leader", kv.Config{}, "http_500", "No cluster leader"},
		{"namespace on CE", 400, nil, "Namespaces are a Consul Enterprise feature", kv.Config{}, "http_400", "CONSUL_NAMESPACE"},
		{"TLS wanted", 400, nil, "Client sent an HTTP request to an HTTPS server.", kv.Config{}, "http_400", "write https://"},
		{"redirect", 302, http.Header{"Location": {"https://login.example/"}}, "", kv.Config{}, "http_302", "redirects"},
		{"empty token file", 200, good, "", kv.Config{TokenFile: emptyFile(t)}, kv.NoToken, "empty"},
		{"missing token file", 200, good, "", kv.Config{TokenFile: "/nonexistent/token"}, kv.NoToken, "/nonexistent/token"},
		{"nobody there", 0, nil, "", kv.Config{Address: "unix:///nonexistent/socket"}, kv.Transport, "/nonexistent/socket"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if q := r.URL.Query(); r.URL.Path != "/v1/kv/hadrain/state/" || !q.Has("recurse") || !q.Has("consistent") {
					t.Errorf("request %s, want a recursive, consistent read of the prefix", r.URL)
				}
				maps.Copy(w.Header(), tc.header)
				w.WriteHeader(tc.code)
				fmt.Fprint(w, tc.body)
			}))
			defer server.Close()
			if tc.config.Address == "" {
				tc.config.Address = server.URL
			}
			check(t, readOnce(t, tc.config), tc.reason, tc.advice)
		})
	}
}

func check(t *testing.T, err *kv.ReadError, reason, advice string) {
	t.Helper()
	switch {
	case reason == "" && err != nil:
		t.Errorf("refused: %v", err)
	case reason != "" && err == nil:
		t.Errorf("accepted, want %s", reason)
	case reason != "" && (err.Reason != reason || !strings.Contains(err.Message, advice)):
		t.Errorf("got %v, want reason %s and %q", err, reason, advice)
	}
}

// readOnce returns how the first read of a watch ends.
func readOnce(t *testing.T, cfg kv.Config) *kv.ReadError {
	t.Helper()
	client, err := cfg.Client()
	if err != nil {
		t.Fatalf("Client(): %v", err)
	}
	w := startWatch(t, kv.WatchConfig{Root: "hadrain", Address: cfg.Shown(), List: cfg.Lister(client, "hadrain"), MaxKeys: 5})
	<-w.Changed()
	return w.Health().Failure
}

func emptyFile(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(name, []byte(" \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// startWatch runs a watch until the test ends.
func startWatch(t *testing.T, cfg kv.WatchConfig) *kv.Watch {
	t.Helper()
	if cfg.Observe == nil {
		cfg.Observe = func(*kv.ReadError, bool, time.Duration) {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	w := kv.NewWatch(ctx, cfg)
	done := make(chan error, 1)
	go func() { done <- w.Run() }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run() = %v, want nil", err)
		}
	})
	return w
}

package kv_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	consulapi "github.com/hashicorp/consul/api"

	"hadrain/internal/devstore"
	"hadrain/internal/kv"
	"hadrain/internal/testpeer"
)

const management = "00000000-0000-4000-8000-000000000001"

// What a token may not do is an error that says which policy it needs.
func TestPolicies(t *testing.T) {
	consul := testpeer.Consul(t, testpeer.ConsulConfig{
		Token: management,
		HCL:   `acl { enabled = true default_policy = "deny" tokens { initial_management = "` + management + `" } }`,
	})
	client := consul.Client(t)
	config := func(name, rules string) kv.Config {
		return kv.Config{Address: consul.Addr(), Token: newToken(t, client, name, rules)}
	}
	initialised(t, kv.Config{Address: consul.Addr(), Token: management})
	changes := []kv.Change{{Key: "canary", Value: "drain"}}

	full := newStore(t, config("writer", `key_prefix "hadrain/" { policy = "write" }`), "hadrain")
	if _, err := full.Apply(t.Context(), read(t, full), changes, author); err != nil {
		t.Errorf("with the policy that the documentation names: %v", err)
	}
	state := read(t, full)
	before := dump(t, client.KV())

	reader := newStore(t, config("reader", `key_prefix "hadrain/" { policy = "read" }`), "hadrain")
	_, err := reader.Apply(t.Context(), read(t, reader), []kv.Change{{Key: "canary", Value: "ready"}}, author)
	write, ok := errors.AsType[*kv.WriteError](err)
	if !ok || write.Maybe || !strings.Contains(err.Error(), `the token needs key_prefix "hadrain/state/" { policy = "write" }`) {
		t.Errorf("writing with a token that may only read: %v", err)
	}

	for name, cfg := range map[string]kv.Config{
		"acl_filtered":  config("part", `key_prefix "hadrain/state/web/" { policy = "read" }`),
		"acl_anonymous": {Address: consul.Addr(), Token: kv.Anonymous},
		"http_403":      {Address: consul.Addr(), Token: "00000000-0000-4000-8000-00000000dead"},
	} {
		s := newStore(t, cfg, "hadrain")
		for verb, do := range map[string]func() error{
			"Read": func() error { _, err := s.Read(t.Context()); return err },
			"Init": func() error { _, err := s.Init(t.Context(), "", false); return err },
		} {
			err := do()
			if refused, ok := errors.AsType[*kv.ReadError](err); !ok || refused.Reason != name {
				t.Errorf("%s with a token that gets %s: %v", verb, name, err)
			}
		}
		if _, err := s.Apply(t.Context(), state, []kv.Change{{Key: "canary", Value: "ready"}}, author); err == nil {
			t.Errorf("a write with a token that gets %s succeeded", name)
		}
	}
	if after := dump(t, client.KV()); after != before {
		t.Errorf("the store was\n%s\nand is\n%s", before, after)
	}
}

func newToken(t *testing.T, client *consulapi.Client, name, rules string) string {
	t.Helper()
	policy, _, err := client.ACL().PolicyCreate(&consulapi.ACLPolicy{Name: name, Rules: rules}, nil)
	if err != nil {
		t.Fatal(err)
	}
	token, _, err := client.ACL().TokenCreate(&consulapi.ACLToken{Policies: []*consulapi.ACLTokenPolicyLink{{ID: policy.ID}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return token.SecretID
}

// A write that failed says whether it can have been applied.
func TestWriteErrors(t *testing.T) {
	store := devstore.New()
	defer store.Close()
	entered := make(chan struct{}, 1)
	var txn atomic.Pointer[http.HandlerFunc] // stands in for the store's transactions
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if other := txn.Load(); other != nil && r.URL.Path == "/v1/txn" {
			(*other)(w, r)
			return
		}
		store.ServeHTTP(w, r)
	}))
	defer server.Close()
	s, state := initialised(t, kv.Config{Address: server.URL})
	answer := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code); _, _ = w.Write([]byte(body)) }
	}
	for _, tc := range []struct {
		name  string
		txn   http.HandlerFunc
		maybe bool
		want  string
	}{
		{"no leader", answer(500, "No cluster leader"), false, `answered "No cluster leader"; nothing was written`},
		{"unknown token", answer(403, "ACL not found"), false, "nothing was written"},
		{"the leader is gone", answer(500, "leadership lost while committing log"), true, "it may have been applied all the same: look at hadrain status"},
		{"refused without a reason", answer(409, `{}`), false, "without a reason; nothing was written"},
		{"an operation that is unknown", answer(409, `{"Errors":[{"OpIndex":1,"What":"unknown verb"},{"OpIndex":99,"What":"what"}]}`), false, "refuses the write: what"},
		{"cut off", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, true, "may have been applied"},
		{"hung", hang(entered), true, "may have been applied"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			txn.Store(&tc.txn)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tc.name == "hung" {
				go func() { <-entered; cancel() }()
			}
			_, err := s.Apply(ctx, state, []kv.Change{{Key: "canary", Value: "drain"}}, author)
			write, ok := errors.AsType[*kv.WriteError](err)
			if !ok || write.Maybe != tc.maybe || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q, maybe applied: %t", err, tc.want, tc.maybe)
			}
		})
	}
	server.Close()
	_, err := s.Apply(t.Context(), state, []kv.Change{{Key: "canary", Value: "drain"}}, author)
	if write, ok := errors.AsType[*kv.WriteError](err); !ok || write.Maybe || !strings.Contains(err.Error(), "nothing was written") {
		t.Errorf("nobody listening: %v", err)
	}
}

// hang says that a request came, and ends with the client's connection, which
// the server watches only once it has read the request.
func hang(entered chan<- struct{}) http.HandlerFunc {
	return func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		entered <- struct{}{}
		<-r.Context().Done()
	}
}

func TestNewStoreRefuses(t *testing.T) {
	if _, err := kv.NewStore(kv.Config{}, "a//b"); err == nil {
		t.Error("a root that Consul would redirect is taken")
	}
	if got := newStore(t, kv.Config{Address: "http://user:secret@consul:8500"}, "a"); got.Root() != "a" || got.Address() != "http://consul:8500" {
		t.Errorf("root %q, address %q", got.Root(), got.Address())
	}
}

// Whatever stands under a key, it can be replaced and deleted: the journal's
// record of it must fit into the same transaction.
func TestApplyOverAnyValue(t *testing.T) {
	eachStore(t, func(t *testing.T, cfg kv.Config, client *consulapi.KV) {
		s, _ := initialised(t, cfg)
		for _, long := range []string{strings.Repeat("\x01", 512<<10), "drain # " + strings.Repeat("x", 500<<10)} {
			for _, change := range []kv.Change{{Key: "canary", Value: "ready"}, {Key: "canary", Delete: true}} {
				if _, err := client.Put(&consulapi.KVPair{Key: "hadrain/state/canary", Value: []byte(long)}, nil); err != nil {
					t.Fatal(err)
				}
				if _, err := s.Apply(t.Context(), read(t, s), []kv.Change{change}, author); err != nil {
					t.Errorf("changing a value of %d bytes: %v", len(long), err)
				}
			}
		}
	})
}

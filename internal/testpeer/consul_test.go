package testpeer_test

import (
	"context"
	"strings"
	"testing"
	"time"

	consulapi "github.com/hashicorp/consul/api"

	"hadrain/internal/testpeer"
)

func put(t *testing.T, s *testpeer.ConsulServer, key, value string) {
	t.Helper()
	pair := &consulapi.KVPair{Key: key, Value: []byte(value)}
	if _, err := s.Client(t).KV().Put(pair, nil); err != nil {
		t.Fatalf("putting %s: %v", key, err)
	}
}

// get returns "" for a key that is not there.
func get(t *testing.T, s *testpeer.ConsulServer, key string) string {
	t.Helper()
	pair, _, err := s.Client(t).KV().Get(key, &consulapi.QueryOptions{RequireConsistent: true})
	if err != nil {
		t.Fatalf("getting %s: %v", key, err)
	}
	if pair == nil {
		return ""
	}
	return string(pair.Value)
}

func TestConsulForgetsOrKeepsItsData(t *testing.T) {
	for name, tc := range map[string]struct {
		cfg  testpeer.ConsulConfig
		want string
	}{
		"development": {testpeer.ConsulConfig{}, ""},
		"persistent":  {testpeer.ConsulConfig{Persistent: true}, "drain"},
		"tcp":         {testpeer.ConsulConfig{Persistent: true, TCP: true}, "drain"},
	} {
		t.Run(name, func(t *testing.T) {
			s := testpeer.Consul(t, tc.cfg)
			addr := s.Addr()
			put(t, s, "k", "drain")
			if got := get(t, s, "k"); got != "drain" {
				t.Fatalf("k = %q after writing drain", got)
			}
			s.Kill(t)
			if _, _, err := s.Client(t).KV().Get("k", nil); err == nil {
				t.Fatal("a killed Consul answered")
			}
			s.Start(t)
			if got := get(t, s, "k"); got != tc.want {
				t.Errorf("k = %q after a restart, want %q", got, tc.want)
			}
			if s.Addr() != addr {
				t.Errorf("the address moved from %s to %s", addr, s.Addr())
			}
			s.Stop(t)
		})
	}
}

func TestConsulPause(t *testing.T) {
	s := testpeer.Consul(t, testpeer.ConsulConfig{})
	s.Pause(t)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, _, err := s.Client(t).KV().Get("k", (&consulapi.QueryOptions{}).WithContext(ctx))
	if ctx.Err() == nil {
		t.Errorf("a paused Consul answered: err = %v, want a hang", err)
	}
	s.Resume()
	if got := get(t, s, "k"); got != "" {
		t.Errorf("k = %q", got)
	}
}

func TestConsulACL(t *testing.T) {
	const token = "3a3bfa2b-4f3b-4d38-9a17-3c8f0f0c7a11"
	s := testpeer.Consul(t, testpeer.ConsulConfig{
		Token: token,
		HCL:   `acl { enabled = true default_policy = "deny" tokens { initial_management = "` + token + `" } }`,
	})
	put(t, s, "k", "drain")
	anonymous, err := consulapi.NewClient(&consulapi.Config{Address: s.Addr()})
	if err != nil {
		t.Fatal(err)
	}
	_, err = anonymous.KV().Put(&consulapi.KVPair{Key: "k"}, nil)
	if err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("anonymous write: err = %v, want 403", err)
	}
}

func TestConsulClusterSurvivesItsLeader(t *testing.T) {
	servers := testpeer.ConsulCluster(t, 3, testpeer.ConsulConfig{})
	put(t, servers[0], "k", "drain")
	servers[0].Kill(t)
	testpeer.WaitFor(t, "the others to elect a leader", func() (bool, string) {
		pair, _, err := servers[1].Client(t).KV().Get("k", &consulapi.QueryOptions{RequireConsistent: true})
		if err != nil || pair == nil {
			return false, "no answer"
		}
		return string(pair.Value) == "drain", string(pair.Value)
	})
}

package dev

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	consulapi "github.com/hashicorp/consul/api"

	"hadrain/internal/testpeer"
)

// TestStores: a store that was stopped cannot be reached, and one that was
// started again has its data and its address.
func TestStores(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) store{
		"embedded": func(*testing.T) store { return newEmbedded() },
		"consul": func(t *testing.T) store {
			s, err := newOwnConsul(testpeer.Need(t, "consul"), t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := within(t)
			s := open(t)
			defer func() {
				if err := errors.Join(s.stop(), s.remove(context.Background(), "hadrain")); err != nil {
					t.Error(err)
				}
			}()
			if err := errors.Join(s.start(ctx), s.start(ctx)); err != nil {
				t.Fatal(err)
			}
			config := s.config()
			client, err := config.Client()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := client.KV().Put(&consulapi.KVPair{Key: "a", Value: []byte("b")}, nil); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(s.stop(), s.stop()); err != nil {
				t.Fatal(err)
			}
			if err := answers(ctx, client); err == nil {
				t.Error("a stopped store answers")
			}
			if err := s.start(ctx); err != nil {
				t.Fatal(err)
			}
			if s.config() != config {
				t.Errorf("started again at %v, was at %v", s.config(), config)
			}
			pair, _, err := client.KV().Get("a", nil)
			if err != nil || pair == nil || string(pair.Value) != "b" {
				t.Errorf("after the restart: %v, %v", pair, err)
			}
		})
	}
}

// TestConsulRefuses: what Consul says when it does not start reaches the user.
func TestConsulRefuses(t *testing.T) {
	s, err := newOwnConsul(testpeer.Need(t, "consul"), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "consul.hcl"), []byte("no_such_key = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	err = s.start(within(t))
	if err == nil || !strings.Contains(err.Error(), "consul ended by itself") || !strings.Contains(err.Error(), "no_such_key") {
		t.Errorf("error %v", err)
	}
	if s.process != nil {
		t.Error("still has a process")
	}
}

func TestFindConsul(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("CONSUL_HTTP_ADDR", "127.0.0.1:1")
	if s, err := findConsul(within(t), t.TempDir()); err == nil || !strings.Contains(err.Error(), "no consul to use") || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("store %v, error %v", s, err)
	}
	running := newEmbedded()
	if err := running.start(within(t)); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = errors.Join(running.stop(), running.remove(context.Background(), "")) }()
	t.Setenv("CONSUL_HTTP_ADDR", running.config().Address)
	s, err := findConsul(within(t), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.stop(); !errors.Is(err, errNotOurs) {
		t.Errorf("stopping a consul that was running before: %v", err)
	}
	if err := s.remove(within(t), "hadrain-dev-x"); err != nil {
		t.Error(err)
	}
}

package kv_test

import (
	"errors"
	"strings"
	"testing"

	consulapi "github.com/hashicorp/consul/api"

	"hadrain/internal/kv"
)

const someID = "6f1c7c0a-4d9e-4c65-8f0e-2b1c9a7d5e43"

func TestInit(t *testing.T) {
	eachStore(t, func(t *testing.T, cfg kv.Config, client *consulapi.KV) {
		s := newStore(t, cfg, "a/fleet")
		if _, err := client.Put(&consulapi.KVPair{Key: "a/fleet/state/canary", Value: []byte("drain")}, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Read(t.Context()); err == nil || !strings.Contains(err.Error(), "run hadrain init") {
			t.Errorf("reading without a sentinel: %v", err)
		}
		before := dump(t, client)
		if m, err := s.Init(t.Context(), "", true); err != nil || !m.Created || m.Keys != 1 || dump(t, client) != before {
			t.Errorf("dry: %+v, %v, and the store is\n%s", m, err, dump(t, client))
		}
		first, err := s.Init(t.Context(), "", false)
		if err != nil || !first.Created || first.Keys != 1 || kv.CheckID(first.ID) != nil {
			t.Fatalf("first: %+v, %v", first, err)
		}
		if got := dump(t, client); strings.Count(got, "\n") != 2 || !strings.Contains(got, "a/fleet/state/.hadrain=v1 id="+first.ID) {
			t.Errorf("it wrote more or less than the sentinel:\n%s", got)
		}
		before = dump(t, client)
		for _, id := range []string{"", first.ID} {
			if m, err := s.Init(t.Context(), id, false); err != nil || m.Created || m.ID != first.ID {
				t.Errorf("again with id %q: %+v, %v", id, m, err)
			}
		}
		_, err = s.Init(t.Context(), someID, false)
		if other, ok := errors.AsType[*kv.OtherIDError](err); !ok || other.Has != first.ID || other.AskedFor != someID {
			t.Errorf("with another id: %v", err)
		}
		if _, err = s.Init(t.Context(), "nonsense", false); err == nil {
			t.Error("an id that is none is taken")
		}
		if after := dump(t, client); after != before {
			t.Errorf("the store was\n%s\nand is\n%s", before, after)
		}
	})
}

// All who initialise at the same time end with the same id.
func TestInitRace(t *testing.T) {
	eachStore(t, func(t *testing.T, cfg kv.Config, _ *consulapi.KV) {
		s := newStore(t, cfg, "hadrain")
		const hosts = 8
		type result struct {
			kv.Marked
			err error
		}
		results := make(chan result, hosts)
		for range hosts {
			go func() {
				m, err := s.Init(t.Context(), "", false)
				results <- result{m, err}
			}()
		}
		created, ids := 0, map[string]bool{}
		for range hosts {
			r := <-results
			if r.err != nil {
				t.Errorf("a host failed: %v", r.err)
			}
			if r.Created {
				created++
			}
			ids[r.ID] = true
		}
		if created != 1 || len(ids) != 1 {
			t.Errorf("%d hosts created it, with ids %v; want 1", created, ids)
		}
	})
}

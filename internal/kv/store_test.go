package kv_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	consulapi "github.com/hashicorp/consul/api"

	"hadrain/internal/devstore"
	"hadrain/internal/kv"
	"hadrain/internal/testpeer"
)

var author = kv.Author{By: "alice@bastion", Reason: "chg-1", At: time.Date(2026, 9, 9, 12, 0, 2, 345, time.UTC)}

// eachStore runs a test on an empty embedded store and on an empty Consul.
// client sees what the Store under test does.
func eachStore(t *testing.T, test func(t *testing.T, cfg kv.Config, client *consulapi.KV)) {
	t.Run("embedded", func(t *testing.T) {
		store := devstore.New()
		server := httptest.NewServer(store)
		t.Cleanup(func() { server.Close(); store.Close() })
		test(t, kv.Config{Address: server.URL}, plainClient(t, server.URL))
	})
	t.Run("consul", func(t *testing.T) {
		consul := testpeer.Consul(t, testpeer.ConsulConfig{})
		test(t, kv.Config{Address: consul.Addr()}, consul.Client(t).KV())
	})
}

func plainClient(t *testing.T, addr string) *consulapi.KV {
	t.Helper()
	client, err := consulapi.NewClient(&consulapi.Config{Address: addr, Transport: &http.Transport{DisableKeepAlives: true}})
	if err != nil {
		t.Fatal(err)
	}
	return client.KV()
}

func newStore(t *testing.T, cfg kv.Config, root string) *kv.Store {
	t.Helper()
	s, err := kv.NewStore(cfg, root)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// initialised returns a store with its sentinel, and the first read of it.
func initialised(t *testing.T, cfg kv.Config) (*kv.Store, *kv.State) {
	t.Helper()
	s := newStore(t, cfg, "hadrain")
	if _, err := s.Init(t.Context(), "", false); err != nil {
		t.Fatal(err)
	}
	return s, read(t, s)
}

func read(t *testing.T, s *kv.Store) *kv.State {
	t.Helper()
	state, err := s.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return state
}

func dump(t *testing.T, client *consulapi.KV) string {
	t.Helper()
	pairs, _, err := client.List("", &consulapi.QueryOptions{RequireConsistent: true})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, p := range pairs {
		fmt.Fprintf(&b, "%s=%s (%d)\n", p.Key, p.Value, p.ModifyIndex)
	}
	return b.String()
}

func TestApply(t *testing.T) {
	eachStore(t, func(t *testing.T, cfg kv.Config, client *consulapi.KV) {
		s, state := initialised(t, cfg)
		if len(state.Entries) != 0 || state.ID == "" || state.Index == 0 {
			t.Fatalf("first read: %+v", state)
		}
		_, err := s.Apply(t.Context(), state, []kv.Change{{Key: "canary", Value: "drain # one"}, {Key: "web/web-01", Value: "50%"}}, author)
		if err != nil {
			t.Fatal(err)
		}
		state = read(t, s)
		if _, err := s.Apply(t.Context(), state, []kv.Change{{Key: "canary", Keep: true}, {Key: "nope", Keep: true}}, author); err != nil {
			t.Errorf("keeping what is as it was read: %v", err)
		}
		if got := state.Entries["canary"].Value + ", " + state.Entries["web/web-01"].Value; got != "drain # one, 50%" {
			t.Errorf("after the first write: %s", got)
		}
		index, err := s.Apply(t.Context(), state, []kv.Change{
			{Key: "canary", Delete: true}, {Key: "web/web-01", Value: "ready"}, {Key: "web/web-02", Keep: true},
		}, author)
		if err != nil {
			t.Fatal(err)
		}
		state = read(t, s)
		if _, ok := state.Entries["canary"]; ok || state.Entries["web/web-01"].Value != "ready" || state.Index != index {
			t.Errorf("after the second write at index %d: %+v", index, state)
		}
		checkJournal(t, client)
	})
}

func checkJournal(t *testing.T, client *consulapi.KV) {
	t.Helper()
	pairs, _, err := client.List(kv.JournalPrefix("hadrain"), nil)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, p := range pairs {
		var r kv.Record
		if err := json.Unmarshal(p.Value, &r); err != nil {
			t.Fatalf("%s: %v", p.Key, err)
		}
		if !strings.HasPrefix(p.Key, "hadrain/journal/20260909T120002.000000Z-") || r.By != author.By || r.Reason != author.Reason || !r.At.Equal(author.At) {
			t.Errorf("record %s: %s", p.Key, p.Value)
		}
		got[r.Key+": "+value(r.From)+" -> "+value(r.To)]++
	}
	for _, want := range []string{
		"canary: none -> drain # one", "web/web-01: none -> 50%", "canary: drain # one -> none", "web/web-01: 50% -> ready",
	} {
		if got[want] != 1 {
			t.Errorf("the journal says %q %d times, want once; it is %v", want, got[want], got)
		}
	}
	if len(pairs) != 4 {
		t.Errorf("%d records, want 4", len(pairs))
	}
}

func value(v *string) string {
	if v == nil {
		return "none"
	}
	return *v
}

// Whatever changed since the read, nothing is written, and the error names it.
func TestApplyConflicts(t *testing.T) {
	eachStore(t, func(t *testing.T, cfg kv.Config, client *consulapi.KV) {
		s, state := initialised(t, cfg)
		if _, err := s.Apply(t.Context(), state, []kv.Change{{Key: "a", Value: "drain"}, {Key: "b", Value: "drain"}}, author); err != nil {
			t.Fatal(err)
		}
		put := func(key, value string) func() error {
			return func() error {
				_, err := client.Put(&consulapi.KVPair{Key: "hadrain/state/" + key, Value: []byte(value)}, nil)
				return err
			}
		}
		del := func(key string) func() error {
			return func() error { _, err := client.Delete("hadrain/state/"+key, nil); return err }
		}
		for _, tc := range []struct {
			name      string
			meanwhile func() error
			changes   []kv.Change
			key       string
		}{
			{"set what was set", put("a", "ready"), []kv.Change{{Key: "b", Value: "ready"}, {Key: "a", Value: "maint"}}, "a"},
			{"delete what was set", put("a", "hold"), []kv.Change{{Key: "b", Delete: true}, {Key: "a", Delete: true}}, "a"},
			{"create what was created", put("c", "ready"), []kv.Change{{Key: "c", Value: "drain"}, {Key: "b", Value: "ready"}}, "c"},
			{"set what was deleted", del("a"), []kv.Change{{Key: "b", Value: "ready"}, {Key: "a", Value: "ready"}}, "a"},
			{"delete what was deleted", del("b"), []kv.Change{{Key: "b", Delete: true}}, "b"},
			{"keep what was set", put("a", "50%"), []kv.Change{{Key: "a", Keep: true}, {Key: "e", Value: "drain"}}, "a"},
			{"keep what was deleted", del("a"), []kv.Change{{Key: "a", Keep: true}, {Key: "e", Value: "drain"}}, "a"},
			{"keep away what was created", put("f", "ready"), []kv.Change{{Key: "f", Keep: true}, {Key: "e", Value: "drain"}}, "f"},
			{"another sentinel", put(kv.SentinelName, kv.FormatSentinel("6f1c7c0a-4d9e-4c65-8f0e-2b1c9a7d5e43")), []kv.Change{{Key: "d", Value: "drain"}}, kv.SentinelName},
			{"no sentinel", del(kv.SentinelName), []kv.Change{{Key: "d", Value: "drain"}}, kv.SentinelName},
		} {
			t.Run(tc.name, func(t *testing.T) {
				state := read(t, s)
				if err := tc.meanwhile(); err != nil {
					t.Fatal(err)
				}
				before := dump(t, client)
				_, err := s.Apply(t.Context(), state, tc.changes, author)
				conflict, ok := errors.AsType[*kv.ConflictError](err)
				if !ok || len(conflict.Keys) != 1 || conflict.Keys[0] != "hadrain/state/"+tc.key {
					t.Errorf("error %v, want a conflict about %s", err, tc.key)
				}
				if after := dump(t, client); after != before {
					t.Errorf("the store was\n%s\nand is\n%s", before, after)
				}
			})
		}
	})
}

// Of writers that read the same, exactly one wins.
func TestApplyRace(t *testing.T) {
	eachStore(t, func(t *testing.T, cfg kv.Config, client *consulapi.KV) {
		s, state := initialised(t, cfg)
		for round, change := range []kv.Change{{Key: "canary", Value: "drain"}, {Key: "canary", Value: "maint"}, {Key: "canary", Delete: true}} {
			const writers = 8
			results := make(chan error, writers)
			for i := range writers {
				go func() {
					c := change
					if !c.Delete {
						c.Value += fmt.Sprintf(" # by writer %d", i)
					}
					_, err := s.Apply(t.Context(), state, []kv.Change{c}, author)
					results <- err
				}()
			}
			won := 0
			for range writers {
				err := <-results
				if _, lost := errors.AsType[*kv.ConflictError](err); err != nil && !lost {
					t.Errorf("a writer failed: %v", err)
				}
				if err == nil {
					won++
				}
			}
			if won != 1 {
				t.Errorf("round %d: %d of %d writers won, want 1", round, won, writers)
			}
			state = read(t, s)
		}
		if pairs, _, err := client.List(kv.JournalPrefix("hadrain"), nil); err != nil || len(pairs) != 3 {
			t.Errorf("the journal has %d records (%v), want 3: those of the winners", len(pairs), err)
		}
	})
}

// The most that fits is written; one more is refused before it is sent.
func TestApplyLimit(t *testing.T) {
	eachStore(t, func(t *testing.T, cfg kv.Config, client *consulapi.KV) {
		s, state := initialised(t, cfg)
		sets := func(n int) (changes []kv.Change) {
			for i := range n {
				changes = append(changes, kv.Change{Key: fmt.Sprintf("web/web-%03d", i), Value: "drain # " + strings.Repeat("x", 600)})
			}
			return changes
		}
		before := dump(t, client)
		_, err := s.Apply(t.Context(), state, sets(64), author)
		limit, ok := errors.AsType[*kv.LimitError](err)
		if !ok || limit.Changes != 64 || limit.Most != 63 || !strings.Contains(err.Error(), "use a group key") {
			t.Fatalf("64 keys: %v", err)
		}
		if after := dump(t, client); after != before {
			t.Errorf("the store was\n%s\nand is\n%s", before, after)
		}
		if _, err := s.Apply(t.Context(), state, sets(63), author); err != nil {
			t.Fatalf("63 keys: %v", err)
		}
		deletes := sets(43)
		for i := range deletes {
			deletes[i].Delete = true
		}
		state = read(t, s)
		_, err = s.Apply(t.Context(), state, deletes, author)
		if limit, ok := errors.AsType[*kv.LimitError](err); !ok || limit.Most != 42 {
			t.Fatalf("43 deletes: %v", err)
		}
		if _, err := s.Apply(t.Context(), state, deletes[:42], author); err != nil {
			t.Fatalf("42 deletes: %v", err)
		}
	})
}

func TestApplyChecks(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	s := newStore(t, kv.Config{Address: server.URL}, "hadrain")
	for _, tc := range []struct {
		change kv.Change
		want   string
	}{
		{kv.Change{Key: "a b", Value: "drain"}, "white space"},
		{kv.Change{Key: ".hadrain", Value: "drain"}, "only hadrain init"},
		{kv.Change{Key: ".hadrain", Delete: true}, "only hadrain init"},
		{kv.Change{Key: "a", Value: "dran"}, `"dran": want`},
		{kv.Change{Key: "a", Value: ""}, "empty value"},
		{kv.Change{Key: "a", Delete: true}, "it has no value"},
	} {
		if _, err := s.Apply(t.Context(), &kv.State{}, []kv.Change{tc.change}, author); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("Apply(%+v) = %v, want an error with %q", tc.change, err, tc.want)
		}
	}
	if index, err := s.Apply(t.Context(), &kv.State{Index: 7}, nil, author); index != 7 || err != nil {
		t.Errorf("no change: %d, %v", index, err)
	}
}

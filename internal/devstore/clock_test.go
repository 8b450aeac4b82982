package devstore_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hadrain/internal/devstore"
)

// In a bubble, time is fake and there is no network: requests go straight to
// the handler.
type direct struct{ handler http.Handler }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	in := httptest.NewRequestWithContext(r.Context(), r.Method, r.URL.RequestURI(), r.Body)
	in.ContentLength, in.Header = r.ContentLength, r.Header
	d.handler.ServeHTTP(w, in)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return w.Result(), nil
}

func bubble(t *testing.T, run func(*testing.T, *peer, *devstore.Store)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		store := devstore.New()
		defer store.Close()
		p := &peer{base: "http://store", node: devstore.NodeName, limit: time.Hour}
		p.http = &http.Client{Transport: direct{store}}
		run(t, p, store)
	})
}

// advance moves the fake clock of the bubble that it is called in.
func advance(d time.Duration) { <-time.After(d) }

func TestWait(t *testing.T) {
	for _, c := range []struct {
		query string
		wait  time.Duration
	}{
		{"", 5 * time.Minute},
		{"&wait=0s", 5 * time.Minute},
		{"&wait=-1s", 5 * time.Minute},
		{"&wait=10s", 10 * time.Second},
		{"&wait=1ns", time.Nanosecond},
		{"&wait=10m", 10 * time.Minute},
		{"&wait=24h", 10 * time.Minute},
	} {
		t.Run(c.query, func(t *testing.T) {
			bubble(t, func(t *testing.T, p *peer, _ *devstore.Store) {
				p.put(t, "a", "v")
				before := p.one(t, "a").ModifyIndex
				start := time.Now()
				a := p.get(t, fmt.Sprint("/v1/kv/a?index=", before, c.query), 200)
				took := time.Since(start)
				if took < c.wait || took > c.wait+c.wait/16 {
					t.Errorf("waited %v, want %v and at most 1/16 more", took, c.wait)
				}
				if a.index(t) != before {
					t.Errorf("index %d, want the old one, %d", a.index(t), before)
				}
			})
		})
	}
}

// expiry holds for both stores, each with the TTL that it allows: a session
// ends between one and a bit more than two TTLs after its last renewal.
func expiry(t *testing.T, p *peer, behavior string, ttl time.Duration) {
	t.Helper()
	k := key(t)
	id := p.session(t, fmt.Sprintf(`{"TTL":%q,"Behavior":%q,"LockDelay":"0s"}`, ttl, behavior))
	p.want(t, "PUT", "/v1/kv/"+k+"?acquire="+id, "v", 200, "true")
	start := time.Now()
	p.want(t, "PUT", "/v1/session/renew/"+id, "", 200)
	a := woken(t, p.block(t, "/v1/kv/"+k, p.one(t, k).ModifyIndex))
	if took := time.Since(start); took < ttl || took > 3*ttl {
		t.Errorf("the session ended after %v, want between %v and %v", took, ttl, 2*ttl)
	}
	switch behavior {
	case "release":
		if a.status != 200 || a.pairs(t)[0].Session != "" {
			t.Errorf("after the end: %d %s, want the key without a session", a.status, a.body)
		}
	case "delete":
		if a.status != 404 {
			t.Errorf("after the end: %d %s, want no key", a.status, a.body)
		}
	}
	p.want(t, "PUT", "/v1/session/renew/"+id, "", 404)
	if left := p.sessions(t, "info/"+id); len(left) != 0 {
		t.Errorf("info still shows %v", left)
	}
}

func TestExpiry(t *testing.T) {
	for _, behavior := range []string{"release", "delete"} {
		t.Run("embedded/"+behavior, func(t *testing.T) {
			bubble(t, func(t *testing.T, p *peer, _ *devstore.Store) { expiry(t, p, behavior, 10*time.Second) })
		})
	}
	t.Run("consul", func(t *testing.T) {
		p := realConsul(t)
		for _, behavior := range []string{"release", "delete"} {
			t.Run(behavior, func(t *testing.T) { expiry(t, p, behavior, 500*time.Millisecond) })
		}
	})
}

func TestExpiryOfMany(t *testing.T) {
	bubble(t, func(t *testing.T, p *peer, _ *devstore.Store) {
		start := time.Now()
		renewed := p.session(t, `{"TTL":"10s"}`)
		p.session(t, `{"TTL":"20s"}`)
		p.session(t, `{"TTL":"15s"}`)
		forever := p.session(t, "")
		at := func(after time.Duration, want int) {
			t.Helper()
			advance(time.Until(start.Add(after)))
			synctest.Wait()
			if got := len(p.sessions(t, "list")); got != want {
				t.Errorf("%d sessions after %v, want %d", got, after, want)
			}
		}
		at(19*time.Second, 4)
		p.want(t, "PUT", "/v1/session/renew/"+strings.ToUpper(renewed), "", 200)
		at(21*time.Second, 4)
		at(31*time.Second, 3) // the one of 15 s
		at(38*time.Second, 3)
		at(40*time.Second, 1) // the renewed one and that of 20 s
		if got := p.sessions(t, "list"); len(got) != 1 || got[0].ID != forever {
			t.Errorf("left: %+v, want the one without a TTL", got)
		}
	})
}

func TestLockDelayEnds(t *testing.T) {
	for _, c := range []struct {
		delay string
		want  time.Duration
	}{{"15s", 15 * time.Second}, {"1h", time.Minute}} {
		bubble(t, func(t *testing.T, p *peer, _ *devstore.Store) {
			id := p.session(t, `{"LockDelay":"`+c.delay+`"}`)
			p.want(t, "PUT", "/v1/kv/a?acquire="+id, "", 200, "true")
			p.want(t, "PUT", "/v1/session/destroy/"+id, "", 200)
			next := p.session(t, "")
			advance(c.want - time.Nanosecond)
			p.want(t, "PUT", "/v1/kv/a?acquire="+next, "", 200, "false")
			advance(time.Nanosecond)
			p.want(t, "PUT", "/v1/kv/a?acquire="+next, "", 200, "true")
		})
	}
}

// After the tombstones are gone the index of a prefix may go back, as Consul's
// does.
func TestTombstonesEnd(t *testing.T) {
	bubble(t, func(t *testing.T, p *peer, _ *devstore.Store) {
		p.put(t, "p/a", "v")
		old := p.one(t, "p/a").ModifyIndex
		p.put(t, "p/b", "v")
		p.delete(t, "p/b")
		index := func() uint64 { return p.get(t, "/v1/kv/p/?recurse", 200).index(t) }
		buried := index()
		advance(15*time.Minute - time.Nanosecond)
		if got := index(); got != buried || got <= old {
			t.Errorf("index %d, want that of the delete, %d, above %d", got, buried, old)
		}
		advance(time.Nanosecond)
		if got := index(); got != old {
			t.Errorf("index %d after the tombstone's time, want %d", got, old)
		}
	})
}

// A query that is surely blocked sleeps through what is not its business.
func TestSleep(t *testing.T) {
	bubble(t, func(t *testing.T, p *peer, _ *devstore.Store) {
		p.put(t, "p/a", "v")
		before := p.one(t, "p/a").ModifyIndex
		blocked := map[string]<-chan answer{}
		for _, path := range []string{"p/a", "p/?recurse", "p/?keys", "p/none"} {
			blocked[path] = p.block(t, "/v1/kv/"+path, before)
		}
		sleeping := func(after string) {
			t.Helper()
			synctest.Wait()
			for path, c := range blocked {
				if len(c) > 0 {
					t.Errorf("after %s: GET %s woke", after, path)
				}
			}
		}
		sleeping("nothing")
		p.put(t, "p/a", "v")
		sleeping("a PUT of the same value")
		p.put(t, "q", "v")
		p.delete(t, "q")
		sleeping("changes elsewhere")
		p.txn(t, 409, op{"Verb": "set", "Key": "p/a"}, op{"Verb": "get", "Key": "none"})
		sleeping("a refused transaction")
		p.session(t, "")
		sleeping("a new session")
		p.put(t, "p/none", "v")
		delete(blocked, "p/a")
		for path, c := range blocked {
			if a := woken(t, c); a.status != 200 || a.index(t) <= before {
				t.Errorf("GET %s woke with %d", path, a.status)
			}
		}
	})
}

func TestCancel(t *testing.T) {
	bubble(t, func(t *testing.T, p *peer, _ *devstore.Store) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := p.try(ctx, "GET", "/v1/kv/a?index=1", nil)
			ended <- err
		}()
		synctest.Wait()
		if len(ended) > 0 {
			t.Fatal("the query did not block")
		}
		cancel()
		synctest.Wait()
		if len(ended) == 0 {
			t.Fatal("the query did not end with its context")
		}
	})
}

func TestClose(t *testing.T) {
	bubble(t, func(t *testing.T, p *peer, store *devstore.Store) {
		id := p.session(t, `{"TTL":"10s"}`)
		p.put(t, "a", "v")
		blocked := p.block(t, "/v1/kv/a", p.one(t, "a").ModifyIndex)
		synctest.Wait()
		store.Close()
		store.Close()
		if a := woken(t, blocked); a.status != 500 || a.body != "No cluster leader" {
			t.Errorf("a blocked query: %d %q", a.status, a.body)
		}
		for _, c := range []struct{ method, path, body string }{
			{"GET", "/v1/kv/a", ""},
			{"PUT", "/v1/kv/a", "w"},
			{"DELETE", "/v1/kv/a", ""},
			{"PUT", "/v1/txn", `[{"KV":{"Verb":"set","Key":"a"}}]`},
			{"PUT", "/v1/txn", `[{"KV":{"Verb":"get","Key":"a"}}]`},
			{"PUT", "/v1/session/create", ""},
			{"PUT", "/v1/session/renew/" + id, ""},
			{"GET", "/v1/session/list", ""},
		} {
			p.want(t, c.method, c.path, c.body, 500, "No cluster leader")
		}
		p.want(t, "GET", "/v1/status/leader", "", 200, `""`)
	})
}

// Until there is any key, the index is 1, and waiting from there works.
func TestEmpty(t *testing.T) {
	bubble(t, func(t *testing.T, p *peer, _ *devstore.Store) {
		for _, path := range []string{"kv/a", "kv/?recurse", "kv/a?keys", "kv/a?recurse"} {
			if got := p.get(t, "/v1/"+path, 404).index(t); got != 1 {
				t.Errorf("GET %s: index %d, want 1", path, got)
			}
		}
		p.want(t, "GET", "/v1/kv/?keys", "", 200, "[]")
		blocked := p.block(t, "/v1/kv/?recurse", 1)
		synctest.Wait()
		p.put(t, "a", "v")
		if a := woken(t, blocked); a.index(t) < 2 {
			t.Errorf("woke at index %d, want above 1", a.index(t))
		}
		p.delete(t, "?recurse")
		if got := p.get(t, "/v1/kv/?recurse", 404).index(t); got < 3 {
			t.Errorf("index %d after everything was deleted, want it to rise", got)
		}
	})
}

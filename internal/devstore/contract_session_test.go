package devstore_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	consulapi "github.com/hashicorp/consul/api"
)

type sessionInfo struct {
	ID, Name, Node, Behavior, TTL string
	LockDelay                     int64
	NodeChecks                    []string
	ServiceChecks                 []any
	CreateIndex, ModifyIndex      uint64
}

func (p *peer) sessions(t *testing.T, path string) (out []sessionInfo) {
	t.Helper()
	p.get(t, "/v1/session/"+path, 200).decode(t, &out)
	return out
}

func testSessionLife(t *testing.T, p *peer) {
	id := p.session(t, "")
	list := p.sessions(t, "info/"+id)
	if len(list) != 1 {
		t.Fatalf("info: %d sessions, want 1", len(list))
	}
	got := list[0]
	if got.ID != id || got.Node != p.node || got.Behavior != "release" || got.TTL != "" || got.Name != "" ||
		got.LockDelay != int64(15*time.Second) || fmt.Sprint(got.NodeChecks) != "[serfHealth]" ||
		got.ServiceChecks != nil || got.CreateIndex == 0 || got.CreateIndex != got.ModifyIndex {
		t.Errorf("a session made without a body: %+v", got)
	}
	if upper := p.sessions(t, "info/"+strings.ToUpper(id)); len(upper) != 1 {
		t.Errorf("info in upper case: %d sessions, want 1", len(upper))
	}
	for body, delay := range map[string]time.Duration{
		`{"Name":"n","LockDelay":5}`:                5 * time.Second,
		`{"Name":"n","LockDelay":"7s"}`:             7 * time.Second,
		`{"Name":"n","LockDelay":3000000000}`:       3 * time.Second,
		`{"Name":"n","LockDelay":0}`:                0,
		`{"Name":"n","LockDelay":999}`:              999 * time.Second,
		`{"Name":"n","LockDelay":1000}`:             1000,
		`{"Name":"n","LockDelay":"2h","Unknown":1}`: 2 * time.Hour,
	} {
		got := p.sessions(t, "info/"+p.session(t, body))[0]
		if got.Name != "n" || got.LockDelay != int64(delay) {
			t.Errorf("%s: %+v, want a delay of %v", body, got, delay)
		}
	}
	for body, checks := range map[string]string{
		`{"NodeChecks":[]}`:                     "[]",
		`{"Checks":[]}`:                         "[]",
		`{"NodeChecks":["serfHealth"]}`:         "[serfHealth]",
		`{"Checks":["serfHealth"],"TTL":"24h"}`: "[serfHealth]",
	} {
		if got := p.sessions(t, "info/"+p.session(t, body))[0]; fmt.Sprint(got.NodeChecks) != checks || got.NodeChecks == nil {
			t.Errorf("%s: node checks %v, want %s", body, got.NodeChecks, checks)
		}
	}
	if renewed := p.want(t, "PUT", "/v1/session/renew/"+id, "", 200); !strings.Contains(renewed.body, id) {
		t.Errorf("renew: %s", renewed.body)
	}
	for _, path := range []string{"list", "node/" + p.node} {
		found := false
		list := p.sessions(t, strings.ReplaceAll(path, " ", "%20"))
		for i, s := range list {
			found = found || s.ID == id
			if i > 0 && list[i-1].ID >= s.ID {
				t.Errorf("%s is not sorted by id", path)
			}
		}
		if !found {
			t.Errorf("%s: %s is missing", path, id)
		}
	}
	p.want(t, "PUT", "/v1/session/destroy/"+id, "", 200, "true")
	p.want(t, "PUT", "/v1/session/destroy/"+id, "", 200, "true") // of what is gone
	p.want(t, "PUT", "/v1/session/renew/"+id, "", 404, "Session id '"+id+"' not found")
	p.want(t, "GET", "/v1/session/info/"+id, "", 200, "[]")
	p.want(t, "GET", "/v1/session/node/nowhere", "", 200, "[]")
}

func testSessionRefused(t *testing.T, p *peer) {
	for body, want := range map[string]struct {
		status int
		text   string
	}{
		`{`:                      {400, "Request decode failed: unexpected EOF"},
		`{"LockDelay":"x"}`:      {400, `Request decode failed: time: invalid duration "x"`},
		`{"TTL":"25h"}`:          {500, "Invalid Session TTL '90000000000000', must be between ["},
		`{"TTL":"1ms"}`:          {500, "Invalid Session TTL '1000000', must be between ["},
		`{"TTL":"x"}`:            {500, `Session TTL 'x' invalid: time: invalid duration "x"`},
		`{"Behavior":"explode"}`: {500, "Invalid Behavior setting 'explode'"},
		`{"Node":"nowhere"}`:     {500, "apply failed: Missing node registration"},
		`{"Node":""}`:            {500, "Must provide Node"},
		`{"Checks":["x"]}`:       {500, "apply failed: Missing check 'x' registration"},
		`{"NodeChecks":["x"]}`:   {500, "apply failed: Missing check 'x' registration"},
	} {
		if a := p.want(t, "PUT", "/v1/session/create", body, want.status); !strings.HasPrefix(a.body, want.text) {
			t.Errorf("%s: %q, want %q", body, a.body, want.text)
		}
	}
}

func testSessionRelease(t *testing.T, p *peer) {
	k := key(t)
	id := p.session(t, `{"LockDelay":"0s"}`)
	p.want(t, "PUT", "/v1/kv/"+k+"?acquire="+id+"&flags=4", "mine", 200, "true")
	e := p.one(t, k)
	if e.Session != id || e.LockIndex != 1 || e.Flags != 4 {
		t.Errorf("acquired: %+v", e)
	}
	other := p.session(t, `{"LockDelay":"0s"}`)
	p.want(t, "PUT", "/v1/kv/"+k+"?acquire="+other, "theirs", 200, "false")
	p.want(t, "PUT", "/v1/kv/"+k+"?release="+other, "theirs", 200, "false")
	p.put(t, k, "anybody's") // locks are advisory
	if e := p.one(t, k); e.Session != id || string(e.Value) != "anybody's" {
		t.Errorf("after a plain PUT: %+v, want the holder kept", e)
	}
	before := p.one(t, k).ModifyIndex
	blocked := p.block(t, "/v1/kv/"+k, before)
	p.want(t, "PUT", "/v1/session/destroy/"+id, "", 200)
	got := woken(t, blocked).pairs(t)[0]
	if got.Session != "" || string(got.Value) != "anybody's" || got.ModifyIndex <= before {
		t.Errorf("released: %+v", got)
	}
	p.want(t, "PUT", "/v1/kv/"+k+"?acquire="+other, "theirs", 200, "true")
	p.want(t, "PUT", "/v1/kv/"+k+"?release="+other, "free", 200, "true")
	if e := p.one(t, k); e.Session != "" || string(e.Value) != "free" {
		t.Errorf("released by its holder: %+v", e)
	}
}

func testSessionDelete(t *testing.T, p *peer) {
	k := key(t)
	id := p.session(t, `{"Behavior":"delete","LockDelay":"0s"}`)
	for _, name := range []string{"/1", "/2"} {
		p.want(t, "PUT", "/v1/kv/"+k+name+"?acquire="+id, "v", 200, "true")
	}
	p.put(t, k+"/3", "not held")
	before := p.get(t, "/v1/kv/"+k+"/?recurse", 200).index(t)
	blocked := p.block(t, "/v1/kv/"+k+"/?recurse", before)
	p.want(t, "PUT", "/v1/session/destroy/"+id, "", 200)
	a := woken(t, blocked)
	if left := a.pairs(t); len(left) != 1 || left[0].Key != k+"/3" || a.index(t) <= before {
		t.Errorf("after the end of the session: %+v", left)
	}
}

func testSessionBlocking(t *testing.T, p *peer) {
	before := p.get(t, "/v1/session/list", 200).index(t)
	blocked := p.block(t, "/v1/session/list", before)
	id := p.session(t, `{"Name":"`+key(t)+`"}`)
	a := woken(t, blocked)
	if a.index(t) <= before || !strings.Contains(a.body, id) {
		t.Errorf("list woke at %d without the new session", a.index(t))
	}
	blocked = p.block(t, "/v1/session/info/"+id, a.index(t))
	p.want(t, "PUT", "/v1/session/destroy/"+id, "", 200)
	if gone := woken(t, blocked); strings.TrimSpace(gone.body) != "[]" || gone.index(t) <= a.index(t) {
		t.Errorf("info woke at %d with %s", gone.index(t), gone.body)
	}
}

func testLockDelay(t *testing.T, p *peer) {
	k := key(t)
	id := p.session(t, "")
	p.want(t, "PUT", "/v1/kv/"+k+"?acquire="+id, "v", 200, "true")
	p.want(t, "PUT", "/v1/session/destroy/"+id, "", 200)
	next := p.session(t, "")
	p.want(t, "PUT", "/v1/kv/"+k+"?acquire="+next, "v", 200, "false")
	out := p.txn(t, 409, op{"Verb": "lock", "Key": k, "Session": next})
	if want := fmt.Sprintf("failed to lock key %q due to lock delay", k); out.Errors[0].What != want {
		t.Errorf("%+v, want %q", out.Errors, want)
	}
	p.want(t, "PUT", "/v1/kv/"+k+"/other?acquire="+next, "v", 200, "true") // only held keys are protected
	p.put(t, k, "w")                                                       // and only from locks
	// A release by the holder has no delay.
	p.want(t, "PUT", "/v1/kv/"+k+"/other?release="+next, "v", 200, "true")
	p.want(t, "PUT", "/v1/kv/"+k+"/other?acquire="+p.session(t, ""), "v", 200, "true")
}

func testLockIndex(t *testing.T, p *peer) {
	k := key(t)
	id := p.session(t, `{"LockDelay":"0s"}`)
	acquire := func(value string) pair {
		t.Helper()
		p.want(t, "PUT", "/v1/kv/"+k+"?acquire="+id, value, 200, "true")
		return p.one(t, k)
	}
	first := acquire("v")
	if again := acquire("v"); again.ModifyIndex != first.ModifyIndex || again.LockIndex != 1 {
		t.Errorf("acquired again: %+v, want no change from %+v", again, first)
	}
	if other := acquire("w"); other.LockIndex != 1 || other.ModifyIndex <= first.ModifyIndex {
		t.Errorf("acquired again with another value: %+v", other)
	}
	p.want(t, "PUT", "/v1/kv/"+k+"?release="+id, "w", 200, "true")
	if second := acquire("w"); second.LockIndex != 2 {
		t.Errorf("the second lock: %+v, want LockIndex 2", second)
	}
	// Odd, and Consul's: a plain PUT keeps the holder but forgets the count.
	p.put(t, k, "x")
	if plain := p.one(t, k); plain.LockIndex != 0 || plain.Session != id {
		t.Errorf("after a plain PUT: %+v", plain)
	}
}

func testRaceOnLock(t *testing.T, p *peer) {
	k := key(t)
	var ids []string
	for range 10 {
		ids = append(ids, p.session(t, `{"LockDelay":"0s"}`))
	}
	for range 5 {
		var work sync.WaitGroup
		var winners atomic.Int32
		for _, id := range ids {
			work.Go(func() {
				ok, _, err := p.api.KV().Acquire(&consulapi.KVPair{Key: k, Session: id, Value: []byte(id)}, nil)
				if err != nil {
					t.Error(err)
				}
				if ok {
					winners.Add(1)
				}
			})
		}
		work.Wait()
		holder := p.one(t, k)
		if winners.Load() != 1 || string(holder.Value) != holder.Session {
			t.Fatalf("%d sessions hold the lock: %+v", winners.Load(), holder)
		}
		p.want(t, "PUT", "/v1/kv/"+k+"?release="+holder.Session, "", 200, "true")
	}
}

// The lock of Consul's own client library: it renews, blocks and releases.
func testClientLock(t *testing.T, p *peer) {
	k := key(t)
	lock := func() *consulapi.Lock {
		t.Helper()
		l, err := p.api.LockOpts(&consulapi.LockOptions{Key: k, SessionTTL: "10s", LockDelay: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	first, second := lock(), lock()
	if _, err := first.Lock(nil); err != nil {
		t.Fatal(err)
	}
	got := make(chan error, 1)
	go func() { _, err := second.Lock(nil); got <- err }()
	if err := first.Unlock(); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Fatal(err)
	}
	if err := second.Unlock(); err != nil {
		t.Fatal(err)
	}
}

package devstore_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	consulapi "github.com/hashicorp/consul/api"
)

func testIndexOfKey(t *testing.T, p *peer) {
	k := key(t)
	p.put(t, k, "v")
	p.put(t, k+"other", "v")
	a := p.get(t, "/v1/kv/"+k, 200)
	if e := a.pairs(t)[0]; a.index(t) != e.ModifyIndex {
		t.Errorf("index %d, want the key's own %d", a.index(t), e.ModifyIndex)
	}
}

func testIndexOfPrefix(t *testing.T, p *peer) {
	k := key(t)
	index := func() uint64 {
		t.Helper()
		list := p.do(t, "GET", "/v1/kv/"+k+"/?recurse", "").index(t)
		if keys := p.do(t, "GET", "/v1/kv/"+k+"/?keys&separator=/", "").index(t); keys != list {
			t.Errorf("keys has index %d, recurse %d", keys, list)
		}
		return list
	}
	p.put(t, k+"/a", "1")
	p.put(t, k+"/b/c", "1")
	top := p.one(t, k+"/b/c").ModifyIndex
	if got := index(); got != top {
		t.Fatalf("index %d, want the largest below the prefix, %d", got, top)
	}
	p.put(t, k+"x", "beside")
	p.delete(t, k+"x")
	if got := index(); got != top {
		t.Fatalf("index %d after a change beside the prefix, want %d", got, top)
	}
	rise := func(what string) {
		t.Helper()
		got := index()
		if got <= top {
			t.Fatalf("index %d after %s, want it above %d", got, what, top)
		}
		top = got
	}
	p.delete(t, k+"/b/c")
	rise("a delete of the newest key")
	p.put(t, k+"/d/1", "1")
	p.put(t, k+"/d/2", "1")
	rise("two new keys")
	p.delete(t, k+"/d/?recurse")
	rise("a recursive delete")
	p.delete(t, k+"/d/?recurse")
	p.delete(t, k+"/none")
	if got := index(); got != top {
		t.Fatalf("index %d after deletes of nothing, want %d", got, top)
	}
	p.delete(t, k+"/?recurse")
	rise("the delete of everything below the prefix")
}

func testIndexOfMissing(t *testing.T, p *peer) {
	k := key(t)
	p.put(t, k, "v")
	newest := p.one(t, k).ModifyIndex
	for _, path := range []string{"/none", "/none/?recurse", "/none/?keys"} {
		if got := p.get(t, "/v1/kv/"+k+path, 404).index(t); got != newest {
			t.Errorf("GET %s: index %d, want the table's %d", path, got, newest)
		}
	}
}

func testWake(t *testing.T, p *peer) {
	k := key(t)
	p.put(t, k+"/keep", "v")
	set := func(name, value string) func() { return func() { p.put(t, k+name, value) } }
	for _, c := range []struct {
		name string
		act  func()
	}{
		{"create", set("/a", "1")},
		{"update", set("/a", "2")},
		{"cas", func() {
			p.want(t, "PUT", fmt.Sprintf("/v1/kv/%s/a?cas=%d", k, p.one(t, k+"/a").ModifyIndex), "3", 200, "true")
		}},
		{"flags", set("/a?flags=5", "3")},
		{"delete", func() { p.delete(t, k+"/a") }},
		{"txn", func() { p.txn(t, 200, op{"Verb": "set", "Key": k + "/b/1"}, op{"Verb": "set", "Key": k + "/b/2"}) }},
		{"txn delete", func() { p.txn(t, 200, op{"Verb": "delete", "Key": k + "/b/1"}) }},
		{"recursive delete", func() { p.delete(t, k+"/b?recurse") }},
		{"acquire", func() { p.put(t, k+"/l?acquire="+p.session(t, ""), "v") }},
	} {
		before := p.get(t, "/v1/kv/"+k+"/?recurse", 200).index(t)
		tree := p.block(t, "/v1/kv/"+k+"/?recurse", before)
		keys := p.block(t, "/v1/kv/"+k+"/?keys", before)
		c.act()
		after := p.get(t, "/v1/kv/"+k+"/?recurse", 200)
		for _, blocked := range []<-chan answer{tree, keys} {
			if a := woken(t, blocked); a.index(t) <= before || a.index(t) != after.index(t) {
				t.Errorf("%s: woken at index %d, want %d, above %d", c.name, a.index(t), after.index(t), before)
			}
		}
	}
}

func testWakeOnlyWithinPrefix(t *testing.T, p *peer) {
	k := key(t)
	p.put(t, k+"/in", "v")
	before := p.get(t, "/v1/kv/"+k+"/?recurse", 200).index(t)
	blocked := p.block(t, "/v1/kv/"+k+"/?recurse", before)
	single := p.block(t, "/v1/kv/"+k+"/in", before)
	for i := range 20 {
		p.put(t, k+"x"+strconv.Itoa(i), "beside")
		p.put(t, "0"+k, strconv.Itoa(i))
	}
	p.delete(t, k+"x?recurse")
	p.put(t, k+"/in", "w")
	want := p.one(t, k+"/in").ModifyIndex
	for _, c := range []<-chan answer{blocked, single} {
		if a := woken(t, c); a.index(t) != want || string(a.pairs(t)[0].Value) != "w" {
			t.Errorf("woken at index %d with %s, want %d, the change within", a.index(t), a.body, want)
		}
	}
}

func testUnchangedPutDoesNotWake(t *testing.T, p *peer) {
	k := key(t)
	p.put(t, k+"/a?flags=3", "v")
	before := p.get(t, "/v1/kv/"+k+"/?recurse", 200).index(t)
	blocked := p.block(t, "/v1/kv/"+k+"/?recurse", before)
	for range 5 {
		p.put(t, k+"/a?flags=3", "v")
		p.txn(t, 200, op{"Verb": "set", "Key": k + "/a", "Flags": 3, "Value": "dg=="})
	}
	if got := p.one(t, k+"/a").ModifyIndex; got != before {
		t.Fatalf("index %d after a PUT of the same value, want %d", got, before)
	}
	p.put(t, k+"/a?flags=3", "w")
	if a := woken(t, blocked); a.index(t) != p.one(t, k+"/a").ModifyIndex {
		t.Errorf("woken at index %d, want that of the change", a.index(t))
	}
}

func testMissingKeySleepsThroughOthers(t *testing.T, p *peer) {
	k := key(t)
	p.put(t, k+"/other", "0")
	const wait = 200 * time.Millisecond
	slept := false
	for range 20 { // a write that comes before the query ends it at once, rightly
		before := p.get(t, "/v1/kv/"+k+"/none", 404).index(t)
		start := time.Now()
		blocked := p.block(t, "/v1/kv/"+k+"/none?wait=200ms", before)
		for n := 0; len(blocked) == 0; n++ {
			p.put(t, k+"/other", strconv.Itoa(n))
		}
		if a := woken(t, blocked); a.status != 404 {
			t.Fatalf("status %d for a missing key", a.status)
		}
		if slept = time.Since(start) >= wait; slept {
			break
		}
	}
	if !slept {
		t.Error("a query for a missing key woke for writes elsewhere every time")
	}
	before := p.get(t, "/v1/kv/"+k+"/none", 404).index(t)
	blocked := p.block(t, "/v1/kv/"+k+"/none", before)
	p.put(t, k+"/none", "v")
	a := woken(t, blocked)
	if a.status != 200 || a.index(t) <= before {
		t.Errorf("made: status %d, index %d, want 200 and above %d", a.status, a.index(t), before)
	}
	blocked = p.block(t, "/v1/kv/"+k+"/none", a.index(t))
	p.delete(t, k+"/none")
	if gone := woken(t, blocked); gone.status != 404 || gone.index(t) <= a.index(t) {
		t.Errorf("deleted: status %d, index %d, want 404 and above %d", gone.status, gone.index(t), a.index(t))
	}
}

// An index from an epoch that is lost waits, as any other that is not reached:
// the rule for clients is to start over at 0 after an error or a fall.
func testIndexAheadWaits(t *testing.T, p *peer) {
	k := key(t)
	p.put(t, k+"/a", "v")
	now := p.get(t, "/v1/kv/"+k+"/?recurse", 200).index(t)
	start := time.Now()
	a := p.get(t, fmt.Sprintf("/v1/kv/%s/?recurse&wait=300ms&index=%d", k, now+1000), 200)
	if took := time.Since(start); took < 300*time.Millisecond {
		t.Errorf("answered after %v, want it to wait", took)
	}
	if a.index(t) != now {
		t.Errorf("index %d, want %d", a.index(t), now)
	}
}

func testManyWaiters(t *testing.T, p *peer) {
	k := key(t)
	p.put(t, k, "0")
	before := p.one(t, k).ModifyIndex
	var blocked []<-chan answer
	for range 50 {
		blocked = append(blocked, p.block(t, "/v1/kv/"+k, before))
	}
	p.put(t, k, "1")
	for _, c := range blocked {
		if a := woken(t, c); a.index(t) <= before {
			t.Errorf("woken at %d, want above %d", a.index(t), before)
		}
	}
}

// Many clients count with compare-and-set while readers watch that no index
// ever falls.
func testRaceOnCAS(t *testing.T, p *peer) {
	const clients, each = 8, 10
	k := key(t)
	p.put(t, k, "0")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var writers, readers sync.WaitGroup
	for range clients {
		writers.Go(func() {
			if err := count(p.api.KV(), k, each); err != nil {
				t.Error(err)
			}
		})
	}
	for range 2 {
		readers.Go(func() {
			for last := uint64(0); ctx.Err() == nil; {
				_, meta, err := p.api.KV().List(k, nil)
				if err != nil || meta.LastIndex < last {
					t.Errorf("index %d after %d: %v", meta.LastIndex, last, err)
					return
				}
				last = meta.LastIndex
			}
		})
	}
	writers.Wait()
	stop()
	readers.Wait()
	if got := string(p.one(t, k).Value); got != strconv.Itoa(clients*each) {
		t.Errorf("counted to %s, want %d", got, clients*each)
	}
}

// count adds 1 to a number in a key, n times.
func count(kv *consulapi.KV, key string, n int) error {
	for done := 0; done < n; {
		e, _, err := kv.Get(key, nil)
		if err != nil {
			return err
		}
		number, err := strconv.Atoi(string(e.Value))
		if err != nil {
			return err
		}
		e.Value = []byte(strconv.Itoa(number + 1))
		ok, _, err := kv.CAS(e, nil)
		if err != nil {
			return err
		}
		if ok {
			done++
		}
	}
	return nil
}

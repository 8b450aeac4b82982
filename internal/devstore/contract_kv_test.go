package devstore_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
)

func testPathsAndMethods(t *testing.T, p *peer) {
	k := key(t)
	for _, c := range []struct {
		method, path string
		status       int
		body         string
		allow        string
	}{
		{"POST", "/v1/kv/" + k, 405, "method POST not allowed", "OPTIONS,GET,PUT,DELETE"},
		{"OPTIONS", "/v1/kv/" + k, 200, "", "OPTIONS,GET,PUT,DELETE"},
		{"HEAD", "/v1/kv/" + k, 405, "", "OPTIONS,GET,PUT,DELETE"},
		{"GET", "/v1/txn", 405, "method GET not allowed", "OPTIONS,PUT"},
		{"POST", "/v1/txn", 405, "method POST not allowed", "OPTIONS,PUT"},
		{"GET", "/v1/session/create", 405, "method GET not allowed", "OPTIONS,PUT"},
		{"PUT", "/v1/session/list", 405, "method PUT not allowed", "OPTIONS,GET"},
		{"GET", "/v1/nope", 404, "Invalid URL path: not a recognized HTTP API endpoint", ""},
		{"GET", "/v1/session/list/x", 404, "Invalid URL path: not a recognized HTTP API endpoint", ""},
		{"GET", "/v2/kv/a", 404, "Invalid URL path: if attempting to use the HTTP API, ensure the path starts with '/v1/'", ""},
		{"GET", "/v1/kv/", 400, "Missing key name", ""},
		{"PUT", "/v1/kv/", 400, "Missing key name", ""},
		{"PUT", "/v1/kv/?recurse", 400, "Missing key name", ""},
		{"DELETE", "/v1/kv/", 400, "Missing key name", ""},
		{"PUT", "/v1/session/destroy/", 400, "Missing session", ""},
		{"PUT", "/v1/session/renew/", 400, "Missing session", ""},
		{"GET", "/v1/session/info/", 400, "Missing session", ""},
		{"GET", "/v1/session/node/", 400, "Missing node name", ""},
	} {
		a := p.want(t, c.method, c.path, "", c.status, c.body)
		if got := a.header.Get("Allow"); got != c.allow {
			t.Errorf("%s %s: Allow: %q, want %q", c.method, c.path, got, c.allow)
		}
	}
	for path, to := range map[string]string{
		"/v1/kv/a//b?raw": "/v1/kv/a/b?raw",
		"//v1/kv/a":       "/v1/kv/a",
		"/v1/kv/a/../b":   "/v1/kv/b",
		"/v1/kv/a/./":     "/v1/kv/a/",
		"/v1/kv":          "/v1/kv/",
	} {
		// 301 until Go 1.26 made it 307 in ServeMux.
		a := p.do(t, "GET", path, "")
		if a.status != 301 && a.status != 307 || a.header.Get("Location") != to {
			t.Errorf("GET %s: %d to %q, want a redirect to %q", path, a.status, a.header.Get("Location"), to)
		}
	}
	if leader := p.get(t, "/v1/status/leader", 200).body; !strings.Contains(leader, "127.0.0.1:") {
		t.Errorf("leader %s: want an address", leader)
	}
	name, err := p.api.Agent().NodeName()
	if err != nil || name != p.node {
		t.Errorf("the agent's name is %q (%v), want %q", name, err, p.node)
	}
}

func testBadParameters(t *testing.T, p *peer) {
	k := "/v1/kv/" + key(t)
	const number = `strconv.ParseUint: parsing "x": invalid syntax`
	for _, c := range []struct {
		method, path string
		status       int
		body         string
	}{
		{"GET", k + "?stale&consistent", 400, "Cannot specify ?stale with ?consistent, conflicting semantics."},
		{"GET", k + "?max_stale=1s&consistent", 400, "Cannot specify ?stale with ?consistent, conflicting semantics."},
		{"GET", k + "?cached&consistent", 400, "Cannot specify ?cached with ?consistent, conflicting semantics."},
		{"GET", k + "?max_stale=x", 400, `Invalid max_stale value "x"`},
		{"GET", k + "?index=x", 400, "Invalid index"},
		{"GET", k + "?index=-1", 400, "Invalid index"},
		{"GET", k + "?wait=x", 400, "Invalid wait time"},
		{"GET", k + "?wait=10", 400, "Invalid wait time"},
		{"GET", k + "?a;b", 500, ""},
		{"GET", k + "?dc=elsewhere", 500, "No path to datacenter"},
		{"GET", k + "?ns=x", 400, `Invalid query parameter: "ns" - Namespaces are a Consul Enterprise feature`},
		{"PUT", k + "?partition=x", 400, `Invalid query parameter: "partition" - Partitions are a Consul Enterprise feature`},
		{"PUT", k + "?flags=x", 500, number},
		{"PUT", k + "?cas=x", 500, number},
		{"DELETE", k + "?cas=x", 500, number},
		{"PUT", k + "?cas=1&acquire=x", 400, "Conflicting flags: acquire=x&cas=1"},
		{"PUT", k + "?release=x&acquire=x", 400, "Conflicting flags: acquire=x&release=x"},
		{"DELETE", k + "?recurse&cas=1", 400, "Conflicting flags: cas=1&recurse="},
		{"PUT", k + "?acquire=", 500, "raft apply failed: missing session"},
		{"PUT", k + "?release=", 500, "raft apply failed: missing session"},
		{"PUT", k + "?acquire=nope", 500, `raft apply failed: invalid session "nope"`},
		{"PUT", k + "?release=nope", 200, "false"},
	} {
		p.want(t, c.method, c.path, "v", c.status, c.body)
	}
	p.get(t, k, 404)
}

func testGetPutDelete(t *testing.T, p *peer) {
	k := key(t)
	if a := p.get(t, "/v1/kv/"+k, 404); a.body != "" {
		t.Errorf("a missing key: body %q, want none", a.body)
	}
	p.put(t, k, "one")
	first := p.one(t, k)
	if first.Key != k || string(first.Value) != "one" || first.CreateIndex != first.ModifyIndex {
		t.Errorf("after the first PUT: %+v", first)
	}
	p.put(t, k, "two")
	second := p.one(t, k)
	if string(second.Value) != "two" || second.CreateIndex != first.CreateIndex || second.ModifyIndex <= first.ModifyIndex {
		t.Errorf("after the second PUT: %+v, the first was %+v", second, first)
	}
	p.put(t, k, "")
	if a := p.get(t, "/v1/kv/"+k, 200); !strings.Contains(strings.ReplaceAll(a.body, " ", ""), `"Value":null`) {
		t.Errorf("an empty value: %s, want null", a.body)
	}
	p.delete(t, k)
	p.get(t, "/v1/kv/"+k, 404)
	p.delete(t, k) // also of what is gone
	p.put(t, k, "again")
	if again := p.one(t, k); again.CreateIndex <= second.ModifyIndex {
		t.Errorf("made again: CreateIndex %d, want one above %d", again.CreateIndex, second.ModifyIndex)
	}
}

func testHeaders(t *testing.T, p *peer) {
	k := key(t)
	p.put(t, k, "v")
	for _, path := range []string{k, k + "?consistent", k + "?stale", k + "?cached", k + "?recurse", k + "?keys", k + "/none"} {
		a := p.do(t, "GET", "/v1/kv/"+path, "")
		for name, want := range map[string]string{
			"X-Consul-KnownLeader":              "true",
			"X-Consul-LastContact":              "0",
			"X-Consul-Default-ACL-Policy":       "allow",
			"X-Consul-Query-Backend":            "blocking-query",
			"X-Consul-Results-Filtered-By-ACLs": "",
			"X-Cache":                           "",
		} {
			if got := a.header.Get(name); got != want {
				t.Errorf("GET %s: %s: %q, want %q", path, name, got, want)
			}
		}
		a.index(t)
		if a.status == 200 && a.header.Get("Content-Type") != "application/json" {
			t.Errorf("GET %s: Content-Type %q", path, a.header.Get("Content-Type"))
		}
	}
	a := p.want(t, "PUT", "/v1/kv/"+k, "w", 200)
	if got := a.header.Get("X-Consul-Index"); got != "" {
		t.Errorf("PUT: X-Consul-Index %q, want none", got)
	}
	if got := a.header.Get("X-Consul-Default-ACL-Policy"); got != "allow" {
		t.Errorf("PUT: default policy %q, want allow", got)
	}
}

func testRaw(t *testing.T, p *peer) {
	k := "/v1/kv/" + key(t)
	p.want(t, "PUT", k, "<b>\x00\xff", 200)
	a := p.want(t, "GET", k+"?raw", "", 200, "<b>\x00\xff")
	for name, want := range map[string]string{
		"Content-Type":            "text/plain",
		"X-Content-Type-Options":  "nosniff",
		"Content-Security-Policy": "sandbox",
	} {
		if got := a.header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	a.index(t)
	p.get(t, k+"/none?raw", 404)
	if pairs := p.get(t, k+"?raw&recurse", 200).pairs(t); len(pairs) != 1 {
		t.Errorf("raw with recurse: %d keys, want JSON with 1", len(pairs))
	}
}

func testKeys(t *testing.T, p *peer) {
	k := key(t)
	for _, name := range []string{"", "/a", "/b/", "/b/1", "/b/2", "/c/d/e", "x"} {
		p.put(t, k+name, "v")
	}
	for _, c := range []struct {
		query string
		want  []string
	}{
		{"?keys", []string{"", "/a", "/b/", "/b/1", "/b/2", "/c/d/e", "x"}},
		{"?keys&separator=/", []string{"", "/", "x"}},
		{"/?keys&separator=/", []string{"/a", "/b/", "/c/"}},
		{"/?keys&seperator=/", []string{"/a", "/b/", "/c/"}},
		{"/?keys&separator=d/", []string{"/a", "/b/", "/b/1", "/b/2", "/c/d/"}},
		{"/b?keys&separator=", []string{"/b/", "/b/1", "/b/2"}},
	} {
		var got []string
		p.get(t, "/v1/kv/"+k+c.query, 200).decode(t, &got)
		for i := range c.want {
			c.want[i] = k + c.want[i]
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("GET %s: %q, want %q", c.query, got, c.want)
		}
	}
	p.get(t, "/v1/kv/"+k+"/none?keys", 404)
}

func testRecurse(t *testing.T, p *peer) {
	k := key(t)
	for _, name := range []string{"/b", "/a/1", "x/1", "", "/a"} {
		p.put(t, k+name, name)
	}
	for prefix, want := range map[string][]string{
		"":   {"", "/a", "/a/1", "/b", "x/1"},
		"/":  {"/a", "/a/1", "/b"},
		"/a": {"/a", "/a/1"},
	} {
		var got []string
		for _, e := range p.get(t, "/v1/kv/"+k+prefix+"?recurse", 200).pairs(t) {
			got = append(got, strings.TrimPrefix(e.Key, k))
		}
		if !slices.Equal(got, want) {
			t.Errorf("recurse %q: %q, want %q", prefix, got, want)
		}
	}
	p.delete(t, k+"/a?recurse")
	if n := len(p.get(t, "/v1/kv/"+k+"?recurse", 200).pairs(t)); n != 3 {
		t.Errorf("%d keys after the delete, want 3", n)
	}
	p.delete(t, k+"/none?recurse")
	p.delete(t, k+"?recurse")
	p.get(t, "/v1/kv/"+k+"?recurse", 404)
}

func testFlags(t *testing.T, p *peer) {
	k := key(t)
	p.put(t, k+"?flags=18446744073709551615", "v")
	first := p.one(t, k)
	if first.Flags != 1<<64-1 {
		t.Errorf("flags %d, want the largest", first.Flags)
	}
	p.put(t, k, "v") // flags not given are 0: a change
	if got := p.one(t, k); got.Flags != 0 || got.ModifyIndex == first.ModifyIndex {
		t.Errorf("without flags: %+v, before it was %+v", got, first)
	}
}

func testCompareAndSet(t *testing.T, p *peer) {
	k := key(t)
	cas := func(index uint64, value string, want bool) {
		t.Helper()
		p.want(t, "PUT", fmt.Sprintf("/v1/kv/%s?cas=%d", k, index), value, 200, fmt.Sprint(want))
	}
	cas(7, "v", false) // of what does not exist
	cas(0, "v", true)
	cas(0, "w", false)
	at := p.one(t, k).ModifyIndex
	cas(at+1, "w", false)
	cas(at-1, "w", false)
	cas(at, "v", true) // same value: accepted, and no change
	if got := p.one(t, k).ModifyIndex; got != at {
		t.Errorf("cas with the same value: index %d, want %d", got, at)
	}
	cas(at, "w", true)
	if got := p.one(t, k); string(got.Value) != "w" || got.ModifyIndex <= at {
		t.Errorf("after cas: %+v", got)
	}
	del := func(index uint64, want bool) {
		t.Helper()
		p.want(t, "DELETE", fmt.Sprintf("/v1/kv/%s?cas=%d", k, index), "", 200, fmt.Sprint(want))
	}
	del(at, false)
	del(0, false)
	del(p.one(t, k).ModifyIndex, true)
	del(at, true) // what is gone counts as deleted
	p.get(t, "/v1/kv/"+k, 404)
}

func testValueLimit(t *testing.T, p *peer) {
	k := key(t)
	p.put(t, k, strings.Repeat("x", 512<<10))
	a := p.want(t, "PUT", "/v1/kv/"+k, strings.Repeat("x", 512<<10+1), 413)
	if !strings.HasPrefix(a.body, "Request body(524289 bytes) too large, max size: 524288 bytes.") {
		t.Errorf("body %q", a.body)
	}
	if n := len(p.one(t, k).Value); n != 512<<10 {
		t.Errorf("value of %d bytes, want the first", n)
	}
}

func testOddKeys(t *testing.T, p *peer) {
	k := key(t)
	for _, odd := range []string{" a b", "ünï/✓", "q?a=1&b", "100%", "plus+", "#hash", "a%2Fb", "tail/", "\U0001F600"} {
		path := k + url.PathEscape(odd)
		p.put(t, path, odd)
		if got := p.one(t, path); got.Key != k+odd {
			t.Errorf("key %q came back as %q", k+odd, got.Key)
		}
	}
	for _, bad := range []string{"%0A", "%09", "%00", "%7F", "%C2%A0", "%E2%80%8B"} {
		for _, method := range []string{"GET", "PUT", "DELETE"} {
			p.want(t, method, "/v1/kv/"+k+bad, "", 400, "")
		}
	}
	// Not UTF-8: accepted, and indistinguishable in JSON.
	p.put(t, k+"raw%FF", "1")
	p.put(t, k+"raw%FE", "2")
	pairs := p.get(t, "/v1/kv/"+k+"raw?recurse", 200).pairs(t)
	if len(pairs) != 2 || pairs[0].Key != pairs[1].Key || !strings.HasSuffix(pairs[0].Key, "raw\ufffd") {
		t.Errorf("keys that are not UTF-8: %+v", pairs)
	}
}

func testPretty(t *testing.T, p *peer) {
	k := key(t)
	p.put(t, k, "v")
	e := p.one(t, k)
	want := fmt.Sprintf(`[
    {
        "LockIndex": 0,
        "Key": %q,
        "Flags": 0,
        "Value": "dg==",
        "CreateIndex": %d,
        "ModifyIndex": %d
    }
]
`, k, e.CreateIndex, e.ModifyIndex)
	if got := p.get(t, "/v1/kv/"+k+"?pretty", 200).body; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

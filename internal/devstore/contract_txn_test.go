package devstore_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	consulapi "github.com/hashicorp/consul/api"
)

// An op is one operation on a key, in JSON.
type op map[string]any

// A txnAnswer is the body of a transaction's answer.
type txnAnswer struct {
	Results []struct{ KV pair }
	Errors  []struct {
		OpIndex int
		What    string
	}
}

func (p *peer) txn(t *testing.T, status int, ops ...op) (out txnAnswer) {
	t.Helper()
	list := make([]map[string]op, len(ops))
	for i, o := range ops {
		list[i] = map[string]op{"KV": o}
	}
	body, err := json.Marshal(list)
	if err != nil {
		t.Fatalf("encoding a transaction: %v", err)
	}
	p.want(t, "PUT", "/v1/txn", string(body), status).decode(t, &out)
	return out
}

func testTxnVerbs(t *testing.T, p *peer) {
	k := key(t)
	out := p.txn(t, 200,
		op{"Verb": "check-not-exists", "Key": k + "/a"},
		op{"Verb": "set", "Key": k + "/a", "Value": "dg==", "Flags": 9},
		op{"Verb": "get", "Key": k + "/a"},
		op{"Verb": "cas", "Key": k + "/b", "Value": "dg==", "Index": 0},
		op{"Verb": "get-tree", "Key": k},
		op{"Verb": "delete", "Key": k + "/none"},
		op{"Verb": "get-or-empty", "Key": k + "/none"},
	)
	var got []string
	for _, r := range out.Results {
		got = append(got, fmt.Sprintf("%s=%s/%d", strings.TrimPrefix(r.KV.Key, k), r.KV.Value, r.KV.Flags))
	}
	// Writes answer without the value, deletes and check-not-exists not at all.
	if want := "/a=/9 /a=v/9 /b=/0 /a=v/9 /b=v/0 /none=/0"; strings.Join(got, " ") != want {
		t.Errorf("results %q, want %q", got, want)
	}
	at := p.one(t, k+"/a").ModifyIndex
	id := p.session(t, `{"LockDelay":"0s"}`)
	p.txn(t, 200,
		op{"Verb": "check-index", "Key": k + "/a", "Index": at},
		op{"Verb": "check-session", "Key": k + "/a", "Session": ""},
		op{"Verb": "lock", "Key": k + "/a", "Session": id, "Value": "bA=="},
		op{"Verb": "check-session", "Key": k + "/a", "Session": id},
	)
	if e := p.one(t, k+"/a"); e.Session != id || string(e.Value) != "l" || e.LockIndex != 1 {
		t.Errorf("locked: %+v", e)
	}
	p.txn(t, 200, op{"Verb": "unlock", "Key": k + "/a", "Session": id})
	e := p.one(t, k+"/a")
	if e.Session != "" || len(e.Value) != 0 {
		t.Errorf("unlocked: %+v", e)
	}
	p.txn(t, 200, op{"Verb": "delete-cas", "Key": k + "/a", "Index": e.ModifyIndex})
	p.txn(t, 200, op{"Verb": "delete-tree", "Key": k + "/"})
	p.get(t, "/v1/kv/"+k+"?recurse", 404)
	// Only reads: the answer of a query without an index.
	a := p.want(t, "PUT", "/v1/txn", `[{"KV":{"Verb":"get-tree","Key":"`+k+`/none"}}]`, 200)
	if a.header.Get("X-Consul-KnownLeader") != "true" || a.header.Get("X-Consul-Index") != "" {
		t.Errorf("headers of a read: %v", a.header)
	}
	var compact struct {
		Results     []any
		Index       int
		KnownLeader bool
	}
	if a.decode(t, &compact); compact.Index != 1 || !compact.KnownLeader || compact.Results == nil {
		t.Errorf("a read: %s", a.body)
	}
}

func testTxnRefused(t *testing.T, p *peer) {
	k := key(t)
	p.put(t, k, "v")
	at := p.one(t, k).ModifyIndex
	for _, c := range []struct {
		op   op
		what string
	}{
		{op{"Verb": "cas", "Key": k}, fmt.Sprintf("failed to set key %q, index is stale", k)},
		{op{"Verb": "cas", "Key": k + "/none", "Index": 5}, fmt.Sprintf("failed to set key %q, index is stale", k+"/none")},
		{op{"Verb": "delete-cas", "Key": k, "Index": 1}, fmt.Sprintf("failed to delete key %q, index is stale", k)},
		{op{"Verb": "get", "Key": k + "/none"}, fmt.Sprintf("key %q doesn't exist", k+"/none")},
		{op{"Verb": "check-not-exists", "Key": k}, fmt.Sprintf("key %q exists", k)},
		{
			op{"Verb": "check-index", "Key": k, "Index": 1},
			fmt.Sprintf("failed index check for key %q, current modify index %d != 1", k, at),
		},
		{op{"Verb": "check-index", "Key": k + "/none"}, fmt.Sprintf("failed to check index, key %q doesn't exist", k+"/none")},
		{
			op{"Verb": "check-session", "Key": k, "Session": "s"},
			fmt.Sprintf("failed session check for key %q, current session %q != %q", k, "", "s"),
		},
		{op{"Verb": "check-session", "Key": k + "/none"}, fmt.Sprintf("failed to check session, key %q doesn't exist", k+"/none")},
		{op{"Verb": "lock", "Key": k}, "missing session"},
		{op{"Verb": "lock", "Key": k, "Session": "s"}, `invalid session "s"`},
		{op{"Verb": "unlock", "Key": k}, "missing session"},
		{
			op{"Verb": "unlock", "Key": k, "Session": "s"},
			fmt.Sprintf("failed to unlock key %q, lock isn't held, or is held by another session", k),
		},
		{op{"Verb": "set", "Key": ""}, "Must provide key"},
		{op{"Verb": "get-tree", "Key": ""}, "Must provide key"},
		{op{"Verb": "drop", "Key": k}, `unknown KV verb "drop"`},
		{op{"Verb": "SET", "Key": k}, `unknown KV verb "SET"`},
		{op{"Key": k}, `unknown KV verb ""`},
	} {
		out := p.txn(t, 409, op{"Verb": "set", "Key": k, "Value": "eA=="}, c.op)
		stale := c.op["Verb"] == "check-index" && strings.HasPrefix(c.what, "failed index")
		if len(out.Errors) != 1 || out.Results != nil {
			t.Errorf("%v: %+v", c.op, out)
		} else if got := out.Errors[0]; got.OpIndex != 1 || got.What != c.what && !stale {
			t.Errorf("%v: %+v, want %q", c.op, got, c.what)
		}
		out = p.txn(t, 409, c.op) // alone: mostly a read
		if len(out.Errors) != 1 || out.Errors[0].What != c.what {
			t.Errorf("%v alone: %+v, want %q", c.op, out, c.what)
		}
	}
	if e := p.one(t, k); string(e.Value) != "v" || e.ModifyIndex != at {
		t.Errorf("after refused transactions: %+v, want it untouched", e)
	}
	// Every error is told, unless one is found before any operation runs.
	out := p.txn(t, 409, op{"Verb": "get", "Key": k + "/1"}, op{"Verb": "get", "Key": k}, op{"Verb": "get", "Key": k + "/2"})
	if len(out.Errors) != 2 || out.Errors[1].OpIndex != 2 {
		t.Errorf("two errors: %+v", out.Errors)
	}
	out = p.txn(t, 409, op{"Verb": "get", "Key": k + "/1"}, op{"Verb": "set"})
	if len(out.Errors) != 1 || out.Errors[0].OpIndex != 1 {
		t.Errorf("an error found early: %+v", out.Errors)
	}
	a := p.want(t, "PUT", "/v1/txn", `[{"KV":{"Verb":"get"}}]`, 409)
	if got := a.header.Get("X-Consul-KnownLeader"); got != "false" {
		t.Errorf("a read that did not run: KnownLeader %q, want false", got)
	}
}

// Writers set two keys to the same number in a transaction; no reader may ever
// see them differ, not even those of transactions that are refused.
func testTxnAtomic(t *testing.T, p *peer) {
	k := key(t)
	p.txn(t, 200, op{"Verb": "set", "Key": k + "/1"}, op{"Verb": "set", "Key": k + "/2"})
	var writers, readers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for i := range 25 {
				value := fmt.Append(nil, w, "-", i)
				ops := consulapi.KVTxnOps{
					{Verb: consulapi.KVSet, Key: k + "/1", Value: value},
					{Verb: consulapi.KVSet, Key: k + "/2", Value: value},
				}
				refused := i%5 == 0
				if refused {
					ops[1] = &consulapi.KVTxnOp{Verb: consulapi.KVCheckIndex, Key: k + "/2", Index: 1}
				}
				ok, _, _, err := p.api.KV().Txn(ops, nil)
				if err != nil || ok == refused {
					t.Errorf("transaction %s: %v, %v", value, ok, err)
				}
			}
		})
	}
	stop := make(chan struct{})
	readers.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			pairs, _, err := p.api.KV().List(k, nil)
			if err != nil || len(pairs) != 2 || string(pairs[0].Value) != string(pairs[1].Value) {
				t.Errorf("read %v: %v", pairs, err)
			}
		}
	})
	writers.Wait()
	close(stop)
	readers.Wait()
}

func testTxnOneIndex(t *testing.T, p *peer) {
	k := key(t)
	out := p.txn(t, 200, op{"Verb": "set", "Key": k + "/1"}, op{"Verb": "set", "Key": k + "/2"})
	if a, b := out.Results[0].KV, out.Results[1].KV; a.ModifyIndex != b.ModifyIndex || a.CreateIndex != a.ModifyIndex {
		t.Errorf("two keys of one transaction: %+v and %+v", a, b)
	}
	again := p.txn(t, 200, op{"Verb": "set", "Key": k + "/1"}, op{"Verb": "set", "Key": k + "/2", "Value": "dg=="})
	if again.Results[0].KV.ModifyIndex != out.Results[0].KV.ModifyIndex {
		t.Errorf("a set of the same value moved the index")
	}
	if again.Results[1].KV.ModifyIndex <= out.Results[1].KV.ModifyIndex {
		t.Errorf("a set of another value did not move the index")
	}
}

func testTxnLimits(t *testing.T, p *peer) {
	k := key(t)
	ops := make([]op, 129)
	for i := range ops {
		ops[i] = op{"Verb": "set", "Key": fmt.Sprint(k, "/", i)}
	}
	if out := p.txn(t, 200, ops[:128]...); len(out.Results) != 128 {
		t.Errorf("%d results, want 128", len(out.Results))
	}
	body, err := json.Marshal(make([]map[string]op, 129))
	if err != nil {
		t.Fatal(err)
	}
	p.want(t, "PUT", "/v1/txn", string(body), 413, "Transaction contains too many operations (129 > 128)")
	large := `[{"KV":{"Verb":"set","Key":"` + k + `","Value":"` + strings.Repeat("AAAA", 128<<10) + `"}}]`
	a := p.want(t, "PUT", "/v1/txn", large, 413)
	if !strings.Contains(a.body, "too large, max size: 524288 bytes.") {
		t.Errorf("body %q", a.body)
	}
	chunked, err := p.try(t.Context(), "PUT", "/v1/txn", struct{ *strings.Reader }{strings.NewReader(large)})
	if err != nil || chunked.status != 413 || !strings.HasPrefix(chunked.body, "Request body too large, max size: 524288 bytes.") {
		t.Errorf("without a length: %v, %d %q", err, chunked.status, chunked.body)
	}
	p.get(t, "/v1/kv/"+k, 404)
}

func testTxnMalformed(t *testing.T, p *peer) {
	for _, body := range []string{
		"", "{", "{}", "7", `"x"`, `[7]`, `[{"KV":7}]`, `[{"KV":{"Verb":7}}]`, `[{"KV":{"Value":"%"}}]`,
		`[{"KV":{"Index":-1}}]`, `[{"KV":{"Nope":1}}]`, `[{"Nope":{}}]`, `[{"KV":{"Flags":"1"}}]`,
	} {
		a := p.want(t, "PUT", "/v1/txn", body, 400)
		if !strings.HasPrefix(a.body, "Failed to parse body: ") {
			t.Errorf("%s: %q", body, a.body)
		}
	}
	for _, body := range []string{"null", "[]", "[{}]", `[{"KV":null}]`, `[{"Node":null}]`, `[] trailing`} {
		var out txnAnswer
		p.want(t, "PUT", "/v1/txn", body, 200).decode(t, &out)
		if out.Results == nil || len(out.Results) != 0 || out.Errors != nil {
			t.Errorf("%s: %+v, want no results and no errors", body, out)
		}
	}
	// Field names match in any letter case, as encoding/json has it.
	p.want(t, "PUT", "/v1/txn", `[{"kv":{"verb":"get-tree","KEY":"`+key(t)+`"}}]`, 200)
}

func testTxnUnprintableKeys(t *testing.T, p *peer) {
	k := key(t)
	for _, odd := range []string{"\n", "\t", "\x00", "//", "/../x"} {
		p.txn(t, 200, op{"Verb": "set", "Key": k + odd, "Value": "dg=="})
		if out := p.txn(t, 200, op{"Verb": "get", "Key": k + odd}); out.Results[0].KV.Key != k+odd {
			t.Errorf("key %q came back as %q", k+odd, out.Results[0].KV.Key)
		}
	}
	if n := len(p.get(t, "/v1/kv/"+k+"?recurse", 200).pairs(t)); n != 5 {
		t.Errorf("%d keys, want 5", n)
	}
}

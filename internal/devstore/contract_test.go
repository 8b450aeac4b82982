package devstore_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	consulapi "github.com/hashicorp/consul/api"
	"go.uber.org/goleak"

	"hadrain/internal/devstore"
	"hadrain/internal/testpeer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// contract is everything that holds for the embedded store and for a real
// Consul alike. Each case has a prefix of its own.
var contract = []struct {
	name string
	run  func(*testing.T, *peer)
}{
	{"PathsAndMethods", testPathsAndMethods},
	{"BadParameters", testBadParameters},
	{"GetPutDelete", testGetPutDelete},
	{"Headers", testHeaders},
	{"Raw", testRaw},
	{"Keys", testKeys},
	{"Recurse", testRecurse},
	{"Flags", testFlags},
	{"CompareAndSet", testCompareAndSet},
	{"ValueLimit", testValueLimit},
	{"OddKeys", testOddKeys},
	{"Pretty", testPretty},
	{"IndexOfKey", testIndexOfKey},
	{"IndexOfPrefix", testIndexOfPrefix},
	{"IndexOfMissing", testIndexOfMissing},
	{"Wake", testWake},
	{"WakeOnlyWithinPrefix", testWakeOnlyWithinPrefix},
	{"UnchangedPutDoesNotWake", testUnchangedPutDoesNotWake},
	{"MissingKeySleepsThroughOthers", testMissingKeySleepsThroughOthers},
	{"IndexAheadWaits", testIndexAheadWaits},
	{"ManyWaiters", testManyWaiters},
	{"RaceOnCAS", testRaceOnCAS},
	{"TxnVerbs", testTxnVerbs},
	{"TxnRefused", testTxnRefused},
	{"TxnAtomic", testTxnAtomic},
	{"TxnOneIndex", testTxnOneIndex},
	{"TxnLimits", testTxnLimits},
	{"TxnMalformed", testTxnMalformed},
	{"TxnUnprintableKeys", testTxnUnprintableKeys},
	{"SessionLife", testSessionLife},
	{"SessionRefused", testSessionRefused},
	{"SessionRelease", testSessionRelease},
	{"SessionDelete", testSessionDelete},
	{"SessionBlocking", testSessionBlocking},
	{"LockDelay", testLockDelay},
	{"LockIndex", testLockIndex},
	{"RaceOnLock", testRaceOnLock},
	{"ClientLock", testClientLock},
}

func TestContract(t *testing.T) {
	for _, mode := range modes {
		t.Run(mode.name, func(t *testing.T) {
			p := mode.start(t)
			for _, c := range contract {
				t.Run(c.name, func(t *testing.T) { c.run(t, p) })
			}
		})
	}
}

var modes = []struct {
	name  string
	start func(*testing.T) *peer
}{
	{"embedded", embedded},
	{"consul", realConsul},
}

// A peer is one of the two stores, reached over HTTP.
type peer struct {
	base  string        // URL without a final slash
	node  string        // the name of the node that sessions belong to
	limit time.Duration // when to give up a blocking query
	http  *http.Client
	api   *consulapi.Client
}

func embedded(t *testing.T) *peer {
	t.Helper()
	store := devstore.New()
	srv := httptest.NewServer(store)
	t.Cleanup(srv.Close)
	t.Cleanup(store.Close) // first, for it ends blocked queries
	return newPeer(t, srv.URL, devstore.NodeName, &http.Transport{})
}

func realConsul(t *testing.T) *peer {
	t.Helper()
	srv := testpeer.Consul(t, testpeer.ConsulConfig{HCL: `session_ttl_min = "500ms"`})
	socket := strings.TrimPrefix(srv.Addr(), "unix://")
	self, err := srv.Client(t).Agent().NodeName()
	if err != nil {
		t.Fatalf("asking Consul for its name: %v", err)
	}
	return newPeer(t, "http://consul", self, &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	})
}

func newPeer(t *testing.T, base, node string, transport *http.Transport) *peer {
	t.Helper()
	t.Cleanup(transport.CloseIdleConnections)
	p := &peer{base: base, node: node, limit: testpeer.Timeout(t), http: &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	var err error
	p.api, err = consulapi.NewClient(&consulapi.Config{
		Address:    strings.TrimPrefix(base, "http://"),
		HttpClient: &http.Client{Transport: transport},
	})
	if err != nil {
		t.Fatalf("making a client for %s: %v", base, err)
	}
	return p
}

// An answer is a response whose body has been read.
type answer struct {
	status int
	header http.Header
	body   string
}

func (a answer) index(t *testing.T) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(a.header.Get("X-Consul-Index"), 10, 64)
	if err != nil || n == 0 {
		t.Fatalf("X-Consul-Index = %q: want a positive number", a.header.Get("X-Consul-Index"))
	}
	return n
}

// A pair is a key as the API shows it.
type pair struct {
	LockIndex, Flags, CreateIndex, ModifyIndex uint64
	Key, Session                               string
	Value                                      []byte
}

func (a answer) pairs(t *testing.T) (out []pair) {
	t.Helper()
	a.decode(t, &out)
	return out
}

func (a answer) decode(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.body), v); err != nil {
		t.Fatalf("decoding %q: %v", a.body, err)
	}
}

// do sends a request; its path starts with a slash and may have a query.
func (p *peer) do(t *testing.T, method, path, body string) answer {
	t.Helper()
	a, err := p.try(t.Context(), method, path, strings.NewReader(body))
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

func (p *peer) try(ctx context.Context, method, path string, body io.Reader) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, p.base+path, body)
	if err != nil {
		return answer{}, err
	}
	res, err := p.http.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, res.Header, string(text)}, err
}

// want sends a request and fails the test unless the answer has the status and,
// if text is given, that body.
func (p *peer) want(t *testing.T, method, path, body string, status int, text ...string) answer {
	t.Helper()
	a := p.do(t, method, path, body)
	if a.status != status {
		t.Fatalf("%s %s: status %d, want %d; body %q", method, path, a.status, status, a.body)
	}
	for _, want := range text {
		if strings.TrimSpace(a.body) != want {
			t.Fatalf("%s %s: body %q, want %q", method, path, a.body, want)
		}
	}
	return a
}

func (p *peer) get(t *testing.T, path string, status int) answer {
	t.Helper()
	return p.want(t, "GET", path, "", status)
}

func (p *peer) put(t *testing.T, key, value string) {
	t.Helper()
	p.want(t, "PUT", "/v1/kv/"+key, value, 200, "true")
}

func (p *peer) delete(t *testing.T, path string) {
	t.Helper()
	p.want(t, "DELETE", "/v1/kv/"+path, "", 200, "true")
}

// one returns the only key of a GET.
func (p *peer) one(t *testing.T, key string) pair {
	t.Helper()
	pairs := p.get(t, "/v1/kv/"+key, 200).pairs(t)
	if len(pairs) != 1 {
		t.Fatalf("GET %s: %d keys, want 1", key, len(pairs))
	}
	return pairs[0]
}

// session makes a session from a JSON body and returns its id.
func (p *peer) session(t *testing.T, body string) string {
	t.Helper()
	var out struct{ ID string }
	p.want(t, "PUT", "/v1/session/create", body, 200).decode(t, &out)
	if len(out.ID) != 36 {
		t.Fatalf("session id %q: want a UUID", out.ID)
	}
	return out.ID
}

// block sends a blocking GET and returns the channel of its answer.
func (p *peer) block(t *testing.T, path string, index uint64) <-chan answer {
	t.Helper()
	sep := "?wait=60s&index="
	if strings.Contains(path, "?") {
		sep = "&wait=60s&index=" // the first wait counts
	}
	path += sep + strconv.FormatUint(index, 10)
	ctx, cancel := context.WithTimeout(t.Context(), p.limit)
	out := make(chan answer, 1)
	go func() {
		defer cancel()
		defer close(out)
		if a, err := p.try(ctx, "GET", path, nil); err == nil {
			out <- a
		}
	}()
	t.Cleanup(func() { cancel(); <-out })
	return out
}

// woken returns the answer of a blocked query.
func woken(t *testing.T, blocked <-chan answer) answer {
	t.Helper()
	a, ok := <-blocked
	if !ok {
		t.Fatal("a blocking query got no answer in time")
	}
	return a
}

func key(t *testing.T) string { return strings.ReplaceAll(t.Name(), "/", "-") }

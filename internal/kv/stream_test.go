package kv_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"

	consulapi "github.com/hashicorp/consul/api"

	"hadrain/internal/kv"
)

// pairsServer answers every list with the same pairs, and counts connections.
func pairsServer(t *testing.T, pairs int) (server *httptest.Server, body []byte, connections func() int) {
	t.Helper()
	value := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("drain # "), 64))
	text := bytes.NewBufferString("[" + sentinelJSON)
	for i := range pairs {
		fmt.Fprintf(text, `,{"LockIndex":0,"Key":"hadrain/state/web/%d","Flags":3,"Value":%q,"CreateIndex":%d,"ModifyIndex":5}`, i, value, i+1)
	}
	text.WriteString("]")
	body = text.Bytes()
	from := map[string]bool{} // read when the server is closed
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from[r.RemoteAddr] = true
		w.Header().Set("X-Consul-Index", "5")
		w.Header().Set("X-Consul-Knownleader", "true")
		w.Header().Set("X-Consul-Lastcontact", "0")
		_, _ = w.Write(body)
	}))
	t.Cleanup(server.Close)
	return server, body, func() int { server.Close(); return len(from) }
}

// A list is the same as the library's, and its text is never in memory at once:
// the library's buffer alone would take twice the text.
func TestListIsDecodedPairByPair(t *testing.T) {
	const pairs = 3000
	server, body, connections := pairsServer(t, pairs)
	cfg := kv.Config{Address: server.URL}
	client, err := cfg.Client()
	if err != nil {
		t.Fatal(err)
	}
	read := cfg.Lister(client, "hadrain")
	want, _, err := client.KV().List("hadrain/state/", nil)
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	answer, err := read(t.Context(), 0)
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	if most, used := 2*uint64(len(body)), after.TotalAlloc-before.TotalAlloc; used > most {
		t.Errorf("an answer of %d bytes took %d, want at most %d", len(body), used, most)
	}
	if answer.Meta.LastIndex != 5 || !answer.Meta.KnownLeader || len(answer.Pairs) != pairs+1 {
		t.Fatalf("%d pairs, %+v", len(answer.Pairs), answer.Meta)
	}
	for i, got := range answer.Pairs {
		if !equal(got, want[i]) {
			t.Fatalf("pair %d is %+v, the library's %+v", i, got, want[i])
		}
	}
	if _, err := read(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if n := connections(); n != 1 {
		t.Errorf("%d connections, want one: an answer was not read to its end", n)
	}
}

func equal(a, b *consulapi.KVPair) bool {
	return a.Key == b.Key && bytes.Equal(a.Value, b.Value) && a.Flags == b.Flags && a.CreateIndex == b.CreateIndex && a.ModifyIndex == b.ModifyIndex
}

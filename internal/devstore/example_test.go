package devstore_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	consulapi "github.com/hashicorp/consul/api"

	"hadrain/internal/devstore"
)

// A store is served as any handler, and Consul's own client library talks to it.
func ExampleStore() {
	store := devstore.New()
	srv := httptest.NewServer(store)
	defer srv.Close()
	defer store.Close() // before the server, for it ends blocked queries

	client, err := consulapi.NewClient(&consulapi.Config{
		Address:    strings.TrimPrefix(srv.URL, "http://"),
		HttpClient: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	pair := &consulapi.KVPair{Key: "hadrain/state/canary", Value: []byte("drain")}
	if _, err := client.KV().Put(pair, nil); err != nil {
		fmt.Println(err)
		return
	}
	pairs, _, err := client.KV().List("hadrain/state/", &consulapi.QueryOptions{RequireConsistent: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range pairs {
		fmt.Printf("%s = %s\n", p.Key, p.Value)
	}
	// Output: hadrain/state/canary = drain
}

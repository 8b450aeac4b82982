package devstore_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"hadrain/internal/devstore"
)

// FuzzTxn sends any body as a transaction. Whatever it is, it gets one of four
// answers; it changes nothing unless accepted; and what is accepted has only
// known verbs.
func FuzzTxn(f *testing.F) {
	for _, seed := range []string{
		"", "null", "[]", "[{}]", "[null]", `[{"KV":null}]`, `{"KV":{}}`, `[{"Node":{"Verb":"set"}}]`,
		`[{"KV":{"Verb":"set","Key":"a","Value":"dg=="}},{"KV":{"Verb":"get","Key":"a"}}]`,
		`[{"KV":{"Verb":"cas","Key":"a","Index":0}}]`, `[{"KV":{"Verb":"delete-tree","Key":""}}]`,
		`[{"KV":{"Verb":"check-index","Key":"kept","Index":2}}]`, `[{"KV":{"Verb":"lock","Key":"a","Session":"s"}}]`,
		`[{"KV":{"Verb":"get-tree","Key":"k"}}]`, `[{"KV":{"Verb":"set","Key":"a","Value":"%"}}]`,
		`[{"kv":{"VERB":"unlock","key":"\u0000"}}]`, `[{"KV":{"Verb":"drop","Key":"a"}}]`,
		`[{"KV":{"Verb":"set","Key":"kept"}},{"KV":{"Verb":"check-not-exists","Key":"kept"}}]`,
	} {
		f.Add(seed)
	}
	verbs := []string{
		"set", "cas", "lock", "unlock", "get", "get-or-empty", "get-tree", "check-index", "check-session",
		"check-not-exists", "delete", "delete-tree", "delete-cas",
	}
	f.Fuzz(func(t *testing.T, body string) {
		store := devstore.New()
		defer store.Close()
		send := func(method, path, body string) *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			store.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
			return w
		}
		send("PUT", "/v1/kv/kept", "v")
		before := send("GET", "/v1/kv/?recurse", "").Body.String()
		switch res := send("PUT", "/v1/txn", body); res.Code {
		case http.StatusOK:
			var ops []struct{ KV *struct{ Verb string } }
			if err := json.NewDecoder(strings.NewReader(body)).Decode(&ops); err != nil {
				t.Fatalf("accepted %q, which is not JSON: %v", body, err)
			}
			for _, op := range ops {
				if op.KV != nil && !slices.Contains(verbs, op.KV.Verb) {
					t.Errorf("accepted the verb %q", op.KV.Verb)
				}
			}
			if !json.Valid(res.Body.Bytes()) {
				t.Errorf("the answer %q is not JSON", res.Body)
			}
		case http.StatusBadRequest, http.StatusConflict, http.StatusRequestEntityTooLarge:
			if after := send("GET", "/v1/kv/?recurse", "").Body.String(); after != before {
				t.Errorf("refused with %d, and the keys changed from %s to %s", res.Code, before, after)
			}
		default:
			t.Errorf("status %d: %s", res.Code, res.Body)
		}
	})
}

// FuzzPath sends any path and query as a GET: no panic, no status but these.
func FuzzPath(f *testing.F) {
	for _, seed := range []string{
		"/v1/kv/a", "/v1/kv/?recurse", "/v1/kv/a?keys&separator=/", "/v1/kv//", "/", "//", "/v1/kv/%00", "/v1/kv/a?index=0&wait=1h",
		"/v1/session/info/x", "/v1/session/node/", "/v1/kv/a?a;b", "/v1/kv/%ff?raw", "/v1/agent/self?pretty", "*",
	} {
		f.Add(seed)
	}
	ok := []int{200, 301, 400, 404, 405, 500}
	f.Fuzz(func(t *testing.T, target string) {
		req, err := http.NewRequestWithContext(t.Context(), "GET", target, nil)
		if err != nil || req.URL.Query().Get("index") != "" { // an index may block
			return
		}
		store := devstore.New()
		defer store.Close()
		w := httptest.NewRecorder()
		store.ServeHTTP(w, req)
		if !slices.Contains(ok, w.Code) {
			t.Errorf("GET %q: status %d", target, w.Code)
		}
	})
}

package dev

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hadrain/internal/desired"
	"hadrain/internal/statusjson"
)

// TestTell: a step prints what a user would type, what is expected and what
// was seen, and fails with what was seen instead.
func TestTell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		s := story{environment: &environment{command: "bin/hadrain"}, out: &out}
		s.write = func(_ context.Context, key string, state desired.State, _ string) error {
			if key != canary || state != desired.Drain {
				t.Errorf("wrote %v to %s", state, key)
			}
			return nil
		}
		command, act := s.set(desired.Drain, "a test")
		looks := 0
		third := func(context.Context) (string, bool) { looks++; return "all quiet", looks == 3 }
		if err := s.tell(t.Context(), step{command: command, expect: "quiet", act: act, until: []probe{third}}); err != nil {
			t.Fatal(err)
		}
		want := "      $ bin/hadrain drain canary --reason \"a test\" --yes\n      expect: quiet\n       0.0 s: all quiet\n\n"
		if out.String() != want {
			t.Errorf("got\n%s\nwant\n%s", out.String(), want)
		}

		never := func(context.Context) (string, bool) { return "web/web-01 is UP", false }
		began := time.Now()
		err := s.tell(t.Context(), step{expect: "DRAIN", until: []probe{never}})
		if err == nil || !strings.Contains(err.Error(), "expected: DRAIN; after 40s still: web/web-01 is UP") {
			t.Errorf("error %v", err)
		}
		if waited := time.Since(began); waited != stepDeadline {
			t.Errorf("gave up after %v", waited)
		}
		act = func(context.Context) (string, error) { return "", errors.New("no such store") }
		if err := s.tell(t.Context(), step{act: act}); err == nil || err.Error() != "no such store" {
			t.Errorf("error %v", err)
		}
	})
}

// TestDaemonProbes: checks counts questions, not looks; stale and fresh follow
// what render says about its reads.
func TestDaemonProbes(t *testing.T) {
	base := time.Date(2026, 9, 9, 12, 0, 0, 0, time.UTC)
	responder := statusjson.Responder{Rows: []statusjson.Row{{Row: "web/a", Answer: "drain 100%"}, {Row: "web/b"}}}
	var render statusjson.Render
	mux := http.NewServeMux()
	serve := func(path string, doc any) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(doc) })
	}
	serve("/responder/status.json", &responder)
	serve("/render/status.json", &render)
	server := httptest.NewServer(mux)
	defer server.Close()
	e := environment{render: server.URL + "/render", responder: server.URL + "/responder", client: server.Client()}

	look := func(p probe, want bool, text string) {
		t.Helper()
		if seen, ok := p(t.Context()); ok != want || !strings.Contains(seen, text) {
			t.Errorf("seen %q, %v; want %q, %v", seen, ok, text, want)
		}
	}
	checks := e.checks(2, "web/a")
	for i, want := range []bool{false, false, false, true, true} {
		at := []int{0, 0, 1, 2, 2}[i]
		responder.Rows[0].Asked = base.Add(time.Duration(at) * time.Second)
		look(checks, want, `of web/a, answered "drain 100%"`)
	}
	render.LastAccepted = base
	look(e.stale(), false, "render read the store")
	look(e.fresh(base.Add(-time.Second)), true, "render read the store")
	look(e.fresh(base), false, "")
	render.Refused = &statusjson.Refused{Reason: "transport", Message: "connection refused"}
	look(e.stale(), true, "says: connection refused")
	look(e.fresh(base.Add(-time.Second)), false, "")
	e.render += "/gone"
	look(e.stale(), false, "404")
}

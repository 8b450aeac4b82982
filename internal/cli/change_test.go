package cli_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"

	"hadrain/internal/cli"
	"hadrain/internal/cmdline"
	"hadrain/internal/devstore"
	"hadrain/internal/kv"
)

// hadrain runs one command line in this process, without any variable.
func hadrain(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	none := func(string) (string, bool) { return "", false }
	err := cmdline.Run(t.Context(), cli.Command(), args, none, &out, &errs)
	return cmdline.Code(err), out.String(), errs.String()
}

// startStore serves an initialised embedded store. before sees each request
// before the store does.
func startStore(t *testing.T, before func(*http.Request)) (addr string, store *kv.Store) {
	t.Helper()
	data := devstore.New()
	t.Cleanup(data.Close)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		before(r)
		data.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	store, err := kv.NewStore(kv.Config{Address: server.URL}, "hadrain")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Init(t.Context(), "", false); err != nil {
		t.Fatal(err)
	}
	return server.URL, store
}

// Somebody writes between the preview and the write: nothing of it is written,
// exit 4, and the error names the key.
func TestChangedMeanwhile(t *testing.T) {
	for _, args := range []string{"drain canary web/web-01", "clear canary", "weight web/web-02 canary 50%", "ready web/web-01 canary"} {
		t.Run(args, func(t *testing.T) {
			var other func() // the other writer, once
			addr, store := startStore(t, func(r *http.Request) {
				if write := other; r.URL.Path == "/v1/txn" && write != nil {
					other = nil
					write()
				}
			})
			set := func(value string) {
				state, err := store.Read(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if _, err := store.Apply(t.Context(), state, []kv.Change{{Key: "canary", Value: value}}, kv.Author{By: "bob"}); err != nil {
					t.Fatal(err)
				}
			}
			set("ready")
			other = func() { set("maint # by=bob") }
			code, stdout, stderr := hadrain(t, append(strings.Fields(args), "--yes", "--consul-addr", addr, "--responder", addr)...)
			if code != cli.ExitRefused || stdout != "" || !strings.Contains(stderr, "changed meanwhile by somebody else: hadrain/state/canary; nothing was written") {
				t.Errorf("exit status %d, stdout %q, stderr:\n%s", code, stdout, stderr)
			}
			state, err := store.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(state.Entries) != 1 || state.Entries["canary"].Value != "maint # by=bob" {
				t.Errorf("the store holds %+v, want what the other one wrote", state.Entries)
			}
		})
	}
}

// Half of a change is what a transaction exists to prevent.
func TestTooManyKeys(t *testing.T) {
	addr, store := startStore(t, func(*http.Request) {})
	args := []string{"drain", "--yes", "--consul-addr", addr, "--responder", addr}
	for i := range 64 {
		args = append(args, fmt.Sprintf("web/web-%02d", i))
	}
	code, _, stderr := hadrain(t, args...)
	if code != cli.ExitRefused || !strings.Contains(stderr, "64 keys at once: at most 63 fit") || !strings.Contains(stderr, "use a group key") {
		t.Errorf("64 keys: exit status %d, stderr:\n%s", code, stderr)
	}
	if state, err := store.Read(t.Context()); err != nil || len(state.Entries) != 0 {
		t.Errorf("the store holds %+v, %v", state, err)
	}
	if code, stdout, stderr := hadrain(t, append(args, "--dry-run")...); code != cli.ExitRefused || stdout != "" {
		t.Errorf("a dry run of what would be refused: exit status %d, %q, stderr:\n%s", code, stdout, stderr)
	}
	if code, _, stderr := hadrain(t, args[:len(args)-1]...); code != 0 {
		t.Errorf("63 keys: exit status %d, stderr:\n%s", code, stderr)
	}
}

// full is a disk without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// A result that cannot be shown must not look like a change that failed.
func TestShowingFails(t *testing.T) {
	addr, store := startStore(t, func(*http.Request) {})
	for _, format := range []string{"table", "json"} {
		var errs bytes.Buffer
		args := []string{"drain", format, "--yes", "--consul-addr", addr, "--responder", "", "-o", format}
		err := cmdline.Run(t.Context(), cli.Command(), args, func(string) (string, bool) { return "", false }, full{}, &errs)
		if cmdline.Code(err) != 1 || !strings.Contains(errs.String(), "hadrain: the change is written (index ") {
			t.Errorf("exit %d: %s", cmdline.Code(err), &errs)
		}
		if state, err := store.Read(t.Context()); err != nil || state.Entries[format].Value == "" {
			t.Errorf("state %+v, %v", state, err)
		}
	}
}

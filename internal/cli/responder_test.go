package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hadrain/internal/responder"
	"hadrain/internal/statusjson"
	"hadrain/internal/testpeer"
)

// secured starts a responder that speaks https and wants the password "secret"
// of ops. It returns its address and the file of its authority.
func secured(t *testing.T) (addr, ca string) {
	t.Helper()
	dir := t.TempDir()
	authority := testpeer.NewAuthority(t)
	cert, key := authority.Issue(t, "lb-1", time.Now().Add(time.Hour))
	web := fmt.Sprintf("tls_server_config: {cert_file: %s/cert, key_file: %[1]s/key}\n"+
		"basic_auth_users: {ops: $2a$05$ZVD/UORRKmxG3KguAuC4P.JbDeH757qHIT7.9XEsTsEjGCT4CRPiC}\n", dir)
	for name, data := range map[string][]byte{"cert": cert, "key": key, "ca": authority.PEM(), "web.yml": []byte(web)} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	listeners := make([]net.Listener, 2)
	for i := range listeners {
		var err error
		if listeners[i], err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() {
		done <- responder.Run(ctx, responder.Config{
			State: filepath.Join(dir, "state"), Agent: listeners[:1], HTTP: listeners[1:], WebConfig: filepath.Join(dir, "web.yml"),
		}, slog.New(slog.DiscardHandler))
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return listeners[1].Addr().String(), filepath.Join(dir, "ca")
}

// printed runs one command line and returns its exit status and all that it
// prints.
func printed(t *testing.T, args ...string) (code int, shown string) {
	t.Helper()
	code, stdout, stderr := hadrain(t, args...)
	return code, stdout + stderr
}

// Every verb that asks responders finds one with a certificate of a private
// authority and a password, says what is missing, and shows no secret.
func TestSecuredResponder(t *testing.T) {
	addr, ca := secured(t)
	store, _ := startStore(t, func(*http.Request) {})
	absent := filepath.Join(t.TempDir(), "absent")
	for _, tc := range []struct {
		url, ca string
		want    string
	}{
		{"https://ops:secret@" + addr, ca, "no state loaded"},
		{"https://ops:secret@" + addr + "/", ca, "no state loaded"},
		{"https://ops:secret@" + addr, "", "responder https://" + addr + " says nothing (tls: failed to verify certificate: x509: certificate signed by unknown authority; name its authority with --responder-ca-file)"},
		{"https://ops:secret@" + addr, absent, "says nothing (reading --responder-ca-file: open " + absent},
		{"https://ops:secret@" + addr, os.Args[0], "there is no certificate in it"},
		{"https://" + addr, ca, "says nothing (it answers 401 Unauthorized: put USER:PASSWORD@ before the host of its URL)"},
		{"https://ops:secret2@" + addr, ca, "it answers 401 Unauthorized"},
		{"http://ops:secret@" + addr, ca, "says nothing (it answers 400 Bad Request: does it want https?)"},
	} {
		flags := []string{"--consul-addr", store, "--responder", tc.url, "--responder-ca-file", tc.ca}
		code, shown := printed(t, append(flags, "status")...)
		if code != 0 || !strings.Contains(shown, tc.want) || strings.Contains(shown, "secret") {
			t.Errorf("status %v = %d, want %q and no secret\n%s", flags, code, tc.want, shown)
		}
		for _, verb := range [][]string{{"status", "-o", "json"}, {"drain", "canary", "--dry-run"}, {"init", "--id", "6f1c7c0a-4d9e-4c65-8f0e-2b1c9a7d5e43", "--kv-root", "new"}} {
			code, shown := printed(t, append(flags, verb...)...)
			if code != 0 || strings.Contains(shown, "secret") || strings.Contains(shown, "ops") {
				t.Errorf("%v %v = %d, want no secret\n%s", verb, flags, code, shown)
			}
		}
	}
}

// transact sends operations to a store, as JSON.
func transact(t *testing.T, addr, ops string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, addr+"/v1/txn", strings.NewReader(ops))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("writing to the store: %v, %v", resp, err)
	}
	resp.Body.Close()
}

// What a peer in the place of a responder answers, and what anybody wrote into
// Consul, does not drive the terminal.
func TestStatusEscapes(t *testing.T) {
	const evil, shown = "\x1b[31m\u202e", `\x1b[31m\u202e`
	addr, _ := startStore(t, func(*http.Request) {})
	// By its name in a URL Consul would not take the second key.
	put := `{"KV": {"Verb": "set", "Key": "hadrain/state/%s", "Value": "cmVhZHk="}}`
	transact(t, addr, fmt.Sprintf("["+put+","+put+"]", "web/a", `\u001b[31m\u202e`))
	doc := statusjson.Responder{
		Program: statusjson.Program{Schema: statusjson.Schema, Program: responder.Name, Host: evil},
		State:   statusjson.State{Loaded: true, Root: evil, ID: evil, Error: evil},
		Rows:    []statusjson.Row{{Row: "web/a", Keys: []string{"web/a", evil}, Key: evil, Answer: evil}},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/good/status.json", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(doc) })
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		conn, _, _ := http.NewResponseController(w).Hijack()
		_, _ = io.WriteString(conn, "HTTP/1.1 500 "+evil+"\r\n\r\n")
		_ = conn.Close()
	})
	peer := httptest.NewServer(mux)
	defer peer.Close()
	for _, args := range []string{"", "-o wide", "web/x"} {
		for _, responders := range []string{peer.URL + "/good," + peer.URL + "/bad", peer.URL + "/bad"} {
			code, printed := printed(t, append([]string{"status", "--consul-addr", addr, "--responder", responders}, strings.Fields(args)...)...)
			if code != 0 || strings.ContainsAny(printed, evil[:1]+"\u202e") || !strings.Contains(printed, shown) {
				t.Errorf("status %s of %s = %d, want every %s escaped:\n%q", args, responders, code, shown, printed)
			}
		}
	}
	if code, printed := printed(t, "probe", peer.URL+"/"); code != 1 || !strings.Contains(printed, shown) {
		t.Errorf("probe = %d, %q, want %s", code, printed, shown)
	}
}

func TestProbeSecured(t *testing.T) {
	addr, ca := secured(t)
	for _, tc := range []struct {
		url, ca string
		code    int
		want    string
	}{
		{"https://ops:secret@" + addr + "/healthz", ca, 0, ""},
		{"https://ops:secret@" + addr + "/readyz", ca, 1, "hadrain: https://" + addr + "/readyz: "},
		{"https://ops:secret@" + addr + "/healthz", "", 1, "unknown authority"},
		{"https://ops:se/cret@" + addr + "/healthz", ca, 2, `operand "` + addr + `/healthz": want a URL`},
	} {
		code, shown := printed(t, "probe", tc.url, "--responder-ca-file", tc.ca)
		if code != tc.code || !strings.Contains(shown, tc.want) || strings.Contains(shown, "cret") {
			t.Errorf("probe %s = %d, want %d and %q\n%s", tc.url, code, tc.code, tc.want, shown)
		}
	}
}

// What is no URL is refused without showing what may be a password.
func TestResponderWithoutURL(t *testing.T) {
	for url, want := range map[string]string{
		"http://ops:se/cret@lb-1:9779":  `--responder "lb-1:9779": want a URL such as`,
		"http://ops:12/cret@lb-1:9779":  `--responder "lb-1:9779": want a URL such as`,
		"http://ops:12?cret@lb-1:9779":  `--responder "lb-1:9779": want a URL such as`,
		"http://ops:12#cret@lb-1:9779":  `--responder "lb-1:9779": want a URL such as`,
		"http://ops:cret%zz@lb-1:9779":  `--responder "lb-1:9779": want a URL such as`,
		"ftp://ops:secret@lb-1:9779":    `--responder "lb-1:9779": want a URL such as`,
		"http://ops:cret@lb-1:9779/?a":  `--responder "http://lb-1:9779/?a": want a URL such as`,
		"http://ops:cret@":              `--responder "": want a URL such as`,
		"http://lb-1:9779/status%40x?@": `--responder "": want a URL such as`,
	} {
		if code, shown := printed(t, "status", "--responder", url); code != 2 || !strings.Contains(shown, want) || strings.Contains(shown, "cret") {
			t.Errorf("--responder %s = %d, %q; want 2, %q and no secret", url, code, shown, want)
		}
	}
}

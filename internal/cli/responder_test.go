package cli_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hadrain/internal/responder"
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

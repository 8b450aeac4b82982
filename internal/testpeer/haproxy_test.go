package testpeer_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"hadrain/internal/testpeer"
)

const hello = `
defaults
 mode http
 timeout client 5s
 timeout connect 5s
 timeout server 5s
frontend fe
 bind "fd@${FE}"
 http-request return status 200 content-type text/plain string "WORD"
`

func fetch(t *testing.T, addr string) string {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + addr + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestHAProxyReload(t *testing.T) {
	testpeer.EachHAProxy(t, func(t *testing.T, binary string) {
		h := testpeer.HAProxy(t, testpeer.HAProxyConfig{
			Binary: binary,
			Config: strings.ReplaceAll(hello, "WORD", "one"),
			Listen: []string{"FE"},
		})
		if got := fetch(t, h.Addr("FE")); got != "one" {
			t.Fatalf("body = %q, want one", got)
		}
		for _, word := range []string{"two", "three"} {
			h.SetConfig(t, strings.ReplaceAll(hello, "WORD", word))
			h.Reload(t)
			testpeer.WaitFor(t, "the new worker alone to serve", func() (bool, string) {
				got := fetch(t, h.Addr("FE"))
				return got == word, got
			})
		}
		if got := h.MasterCLI(t, "show proc"); !strings.Contains(got, "worker") {
			t.Errorf("show proc: %s", got)
		}
		h.Stop(t)
		if conn, err := net.Dial("unix", h.StatsSocket()); err == nil {
			conn.Close()
			t.Error("a stopped HAProxy still answers")
		}
	})
}

func TestHAProxyPlain(t *testing.T) {
	h := testpeer.HAProxy(t, testpeer.HAProxyConfig{Config: hello, Listen: []string{"FE"}, Plain: true})
	if got := h.CLI(t, "show servers state"); !strings.HasPrefix(got, "1\n# be_id") {
		t.Errorf("show servers state = %q", got)
	}
	if got := fetch(t, h.Addr("FE")); got != "WORD" {
		t.Errorf("body = %q, want WORD", got)
	}
}

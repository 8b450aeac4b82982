package cli_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"hadrain/internal/cli"
	"hadrain/internal/cmdline"
)

func TestProbe(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/ok", func(http.ResponseWriter, *http.Request) {})
	answer := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, text, http.StatusServiceUnavailable) }
	}
	mux.HandleFunc("/none", answer("no state yet"))
	mux.HandleFunc("/why", answer("connection refused"))
	mux.HandleFunc("/silent", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
	mux.HandleFunc("/strange", answer("\x1b[2Jno"))
	server := httptest.NewServer(mux)
	defer server.Close()
	for _, c := range []struct {
		paths []string
		want  string // what it prints
		code  int
	}{
		{[]string{"/ok"}, "", 0},
		{[]string{"/ok", "/why"}, "", 0}, // the first decides
		{[]string{"/none"}, "hadrain: URL/none: no state yet\n", 1},
		{[]string{"/none", "/why", "/ok"}, "hadrain: URL/none: no state yet; URL/why: connection refused\n", 1},
		{[]string{"/silent"}, "hadrain: URL/silent: 404 Not Found\n", 1},
		{[]string{"/strange"}, `hadrain: URL/strange: \x1b[2Jno` + "\n", 1},
	} {
		args := []string{"probe"}
		for _, path := range c.paths {
			args = append(args, server.URL+path)
		}
		var out strings.Builder
		err := cmdline.Run(t.Context(), cli.Command(), args, func(string) (string, bool) { return "", false }, &out, &out)
		if got := strings.ReplaceAll(out.String(), server.URL, "URL"); got != c.want || cmdline.Code(err) != c.code {
			t.Errorf("probe %v = %d, %q; want %d, %q", c.paths, cmdline.Code(err), got, c.code, c.want)
		}
	}
}

func TestProbeOfNothing(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close() // its port refuses now
	for _, args := range [][]string{{"probe"}, {"probe", server.URL}} {
		var out strings.Builder
		err := cmdline.Run(t.Context(), cli.Command(), args, func(string) (string, bool) { return "", false }, &out, &out)
		if err == nil {
			t.Errorf("hadrain %v succeeded", args)
		}
	}
}

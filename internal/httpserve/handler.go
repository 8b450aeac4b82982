// Package httpserve serves what every daemon shows over HTTP:
//
//	/metrics       Prometheus
//	/healthz       200: alive, or 503 and what hangs
//	/readyz        200, or 503 and why not yet
//	/status.json   a document of package statusjson
//	/              a page for people
//	/debug/pprof/  only to peers on this machine
//
// No flood of requests can cost much: 32 connections are open at once, of which
// the longest idle makes room, and four documents or pages are in memory.
//
// TLS and basic auth come from a Prometheus web configuration file, as in
// exporters (https://prometheus.io/docs/prometheus/latest/configuration/https/).
package httpserve

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/pprof"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Config says what is behind the paths.
type Config struct {
	Metrics *prometheus.Registry
	// Alive returns nil unless the daemon hangs and only a restart helps. If
	// nil, whoever can answer is alive.
	Alive func() error
	// Ready returns nil once the daemon is of use, else why it is not yet.
	Ready func() error
	// Status returns the document for /status.json.
	Status func() any
	// Page answers "/". If nil, "/" redirects to /status.json.
	Page http.Handler
}

// Handler returns the handler for all paths. Only GET and HEAD are served.
func Handler(c Config) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(c.Metrics, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	if c.Alive == nil {
		c.Alive = func() error { return nil }
	}
	mux.HandleFunc("GET /healthz", verdict(c.Alive))
	mux.HandleFunc("GET /readyz", verdict(c.Ready))
	turns := make(chan struct{}, mostDocuments)
	status := func(w http.ResponseWriter, _ *http.Request) { document(w, c.Status()) }
	mux.Handle("GET /status.json", inTurn(turns, http.HandlerFunc(status)))
	if c.Page != nil {
		mux.Handle("GET /{$}", inTurn(turns, c.Page))
	} else {
		mux.Handle("GET /{$}", http.RedirectHandler("/status.json", http.StatusFound))
	}
	profiles(mux)
	return mux
}

// verdict answers 200, or 503 with the error.
func verdict(of func() error) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if err := of(); err != nil {
			plain(w, http.StatusServiceUnavailable, err.Error())
			return
		}
		plain(w, http.StatusOK, "ok")
	}
}

func plain(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	// The peer may be gone; there is nobody to tell.
	_, _ = w.Write([]byte(text + "\n"))
}

func document(w http.ResponseWriter, v any) {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		plain(w, http.StatusInternalServerError, "encoding the status: "+err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(append(b, '\n'))
}

func profiles(mux *http.ServeMux) {
	for path, h := range map[string]http.HandlerFunc{
		"/debug/pprof/":        pprof.Index,
		"/debug/pprof/cmdline": pprof.Cmdline,
		"/debug/pprof/profile": pprof.Profile,
		"/debug/pprof/symbol":  pprof.Symbol,
		"/debug/pprof/trace":   pprof.Trace,
	} {
		mux.Handle("GET "+path, local(h))
	}
}

// local serves only peers on this machine: a profile shows memory and costs CPU.
func local(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !fromLoopback(r.RemoteAddr) {
			plain(w, http.StatusForbidden, "profiles are served to this machine only")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// fromLoopback reports whether addr is a loopback address, or that of a unix
// socket, which has no host ("@" or "").
func fromLoopback(addr string) bool {
	if addr == "" || addr == "@" {
		return true
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

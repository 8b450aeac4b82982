package tests_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hadrain/internal/desired"
	"hadrain/internal/haproxy"
	"hadrain/internal/responder"
	"hadrain/internal/statefile"
	"hadrain/internal/statefile/statefiletest"
	"hadrain/internal/testpeer"
)

// How long, and how often, a drained server is used after HAProxy was reloaded:
// the new worker takes every server for ready until its first agent check. The
// server is the last of twenty, whose turn comes last, and carries most weight,
// so that nearly every request would go to it. Run it with -benchtime 10x.
func BenchmarkReloadWindow(b *testing.B) {
	for _, bc := range []struct{ name, global, server string }{
		{"spread over agent-inter 2s", "", ""},
		{"max-spread-checks 50ms", "max-spread-checks 50ms", ""},
		// In rotation only once the agent has said so: for servers that better
		// get nothing than something wrong.
		{"max-spread-checks 50ms, disabled", "max-spread-checks 50ms", "disabled"},
	} {
		b.Run(bc.name, func(b *testing.B) {
			w := newReloadWindow(b, bc.global, bc.server)
			var open time.Duration
			requests := 0
			for b.Loop() {
				took, n := w.reload()
				open += took
				requests += n
			}
			b.ReportMetric(float64(open.Milliseconds())/float64(b.N), "ms-open/op")
			b.ReportMetric(float64(requests)/float64(b.N), "requests/op")
		})
	}
}

type reloadWindow struct {
	b       *testing.B
	haproxy *testpeer.HAProxyServer
	client  *http.Client
}

func newReloadWindow(b *testing.B, global, server string) *reloadWindow {
	b.Helper()
	agent := serveDrained(b)
	_, port, err := net.SplitHostPort(agent)
	if err != nil {
		b.Fatal(err)
	}
	var c strings.Builder
	fmt.Fprintf(&c, "global\n  %s\ndefaults\n  mode http\n  timeout connect 1s\n  timeout client 5s\n  timeout server 5s\n", global)
	c.WriteString("frontend web\n  bind fd@${WEB}\n  default_backend web\nbackend web\n")
	fmt.Fprintf(&c, "  default-server agent-check agent-addr 127.0.0.1 agent-port %s agent-inter 2s\n", port)
	for i := range 19 {
		fmt.Fprintf(&c, "  server s%d abns@hadrain-%s-ready weight 1 agent-send \"web/s%d\\n\"\n", i, port, i)
	}
	fmt.Fprintf(&c, "  server drained abns@hadrain-%s-drained weight 256 agent-send \"web/drained\\n\" %s\n", port, server)
	for _, name := range []string{"ready", "drained"} {
		fmt.Fprintf(&c, "frontend %s\n  bind abns@hadrain-%s-%s\n  http-request return status 200 content-type text/plain string %s\n", name, port, name, name)
	}
	w := &reloadWindow{
		b:       b,
		haproxy: testpeer.HAProxy(b, testpeer.HAProxyConfig{Config: c.String(), Listen: []string{"WEB"}}),
		client:  &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}},
	}
	w.settle()
	return w
}

// serveDrained runs a responder in this process, for which one server is
// drained and all others are ready, and returns its address.
func serveDrained(b *testing.B) string {
	b.Helper()
	state := filepath.Join(b.TempDir(), "state")
	f := &statefile.File{Head: statefile.Head{Root: "hadrain", ID: "6f1c", Index: 7, Host: "lb-1", Rendered: time.Now().UTC()}}
	f.Rows = append(f.Rows, desired.Row{Key: "web/drained", State: desired.Drain})
	if err := statefile.Write(state, statefiletest.Format(f)); err != nil {
		b.Fatal(err)
	}
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- responder.Run(ctx, responder.Config{State: state, Agent: []net.Listener{l}}, slog.New(slog.DiscardHandler))
	}()
	b.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			b.Errorf("responder: %v", err)
		}
	})
	return l.Addr().String()
}

// settle waits until every server had its first agent check.
func (w *reloadWindow) settle() {
	w.b.Helper()
	testpeer.WaitFor(w.b, "every agent check", func() (bool, string) {
		stats, err := haproxy.Stats(w.b.Context(), w.haproxy.StatsSocket())
		if err != nil {
			return false, err.Error()
		}
		for _, s := range stats {
			if s.Proxy == "web" && s.Kind == haproxy.StatServer && s.AgentStatus == "INI" {
				return false, s.Name
			}
		}
		return w.drained(), "the drained server is not"
	})
}

func (w *reloadWindow) drained() bool {
	states, err := haproxy.ServersState(w.b.Context(), w.haproxy.StatsSocket())
	if err != nil {
		return false
	}
	for _, s := range states {
		if s.Server == "drained" {
			return s.Admin&haproxy.FDRAIN != 0
		}
	}
	return false
}

// reload reloads HAProxy under traffic and returns how long the drained server
// got requests, from the first to the last, and how many.
func (w *reloadWindow) reload() (open time.Duration, requests int) {
	w.b.Helper()
	end, done := make(chan struct{}), make(chan struct{})
	var first, last time.Time
	go func() {
		defer close(done)
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-end:
				return
			case <-tick.C:
			}
			if w.get() != "drained" {
				continue
			}
			requests++
			if last = time.Now(); first.IsZero() {
				first = last
			}
		}
	}()
	w.haproxy.Reload(w.b)
	w.settle()
	close(end)
	<-done
	return last.Sub(first), requests
}

// get returns which kind of server answered.
func (w *reloadWindow) get() string {
	resp, err := w.client.Get("http://" + w.haproxy.Addr("WEB"))
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error()
	}
	return string(body)
}

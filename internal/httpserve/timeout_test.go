package httpserve_test

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hadrain/internal/httpserve"
	"hadrain/internal/testpeer"
)

// pipes is a listener in memory, so that time can be that of a bubble.
type pipes struct {
	peers chan net.Conn
	done  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.peers:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error { close(p.done); return nil }

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "unix"} }

func (p *pipes) dial() net.Conn {
	here, there := net.Pipe()
	p.peers <- there
	return here
}

// bubble serves h in memory and calls f beside it.
func bubble(t *testing.T, h http.Handler, f func(t *testing.T, dial func() net.Conn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := &pipes{make(chan net.Conn), make(chan struct{})}
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error)
		go func() { served <- httpserve.Serve(ctx, l, h, "", slog.New(slog.DiscardHandler)) }()
		f(t, l.dial)
		cancel()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
}

// closedAfter returns how long a connection stays open to a peer that sends no more.
func closedAfter(c net.Conn) time.Duration {
	start := time.Now()
	_, _ = io.Copy(io.Discard, c) // however it ends
	return time.Since(start)
}

// No peer keeps a connection by being slow: neither with its request, nor by
// asking for nothing more, nor by not reading.
func TestTimeouts(t *testing.T) {
	large := strings.Repeat("x", 1<<20)
	h := httpserve.Handler(httpserve.Config{
		Metrics: prometheus.NewRegistry(),
		Ready:   func() error { return nil },
		Status:  func() any { return large },
	})
	const whole = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
	for sent, want := range map[string]time.Duration{
		"":                              5 * time.Second,
		"GET /healthz HTTP/1.1\r\nHost": 5 * time.Second,
		"GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n": 5 * time.Second,
		whole: 2 * time.Minute,
	} {
		bubble(t, h, func(t *testing.T, dial func() net.Conn) {
			c := dial()
			if _, err := io.WriteString(c, sent); err != nil {
				t.Fatal(err)
			}
			if got := closedAfter(c); got != want {
				t.Errorf("after %q closed in %v, want %v", sent, got, want)
			}
		})
	}
	bubble(t, h, func(t *testing.T, dial func() net.Conn) {
		c := dial()
		if _, err := io.WriteString(c, strings.Replace(whole, "healthz", "status.json", 1)); err != nil {
			t.Fatal(err)
		}
		<-time.After(10*time.Second + 1) // in the time of the bubble
		if rest, err := io.Copy(io.Discard, c); rest >= int64(len(large)) {
			t.Errorf("a document that was not read for 10 s came whole: %d bytes, %v", rest, err)
		}
	})
}

func TestHeaderLimit(t *testing.T) {
	addr := start(t, handler(nil), "")
	for size, want := range map[int]int{8 << 10: 200, 64 << 10: 431} {
		code, _ := do(t, "GET", "http://"+addr+"/healthz", func(r *http.Request) { r.Header.Set("X", strings.Repeat("x", size)) })
		if code != want {
			t.Errorf("a header of %d bytes: %d, want %d", size, code, want)
		}
	}
}

// What peers send is no change of state, and drives nobody's terminal.
func TestJunkIsNotLogged(t *testing.T) {
	var log testpeer.Output
	addr := startLogging(t, handler(nil), "", slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	for _, junk := range []string{
		"\x1b[31m\u202e\r\n\r\n", "GET /\x1b[31m\u202e HTTP/1.1\r\nHost: x\r\n\r\n", "GET /%1b%5b31m HTTP/1.1\r\nHost: \x1b\r\n\r\n",
	} {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, junk); err != nil {
			t.Fatal(err)
		}
		if _, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil {
			t.Errorf("after %q: %v", junk, err)
		}
		_ = c.Close() // it was answered
	}
	if got := log.String(); strings.ContainsAny(got, "\x1b\u202e") || strings.Count(got, "level=") != strings.Count(got, "level=DEBUG") {
		t.Errorf("the log:\n%q", got)
	}
}

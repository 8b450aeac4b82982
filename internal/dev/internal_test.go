package dev

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"hadrain/internal/haproxy"
	"hadrain/internal/statefile"
	"hadrain/internal/testpeer"
)

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // see Run
	goleak.VerifyTestMain(m)
}

// within returns a context that ends with the test or after a minute.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func listen(t *testing.T) *net.TCPListener {
	t.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// eventually waits until ok holds, looking again and again.
func eventually(t *testing.T, ctx context.Context, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("not seen: %s", what)
		case <-tick.C:
		}
	}
}

// agent answers agent checks with "drain 100%" to whoever sends the group
// canary and "ready 100%" to the others.
func agent(ctx context.Context, l *net.TCPListener) error {
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	for {
		conn, err := l.Accept()
		if err != nil {
			return nil
		}
		buf := make([]byte, 256)
		n, _ := conn.Read(buf)
		reply := "ready 100%\n"
		if strings.HasSuffix(string(buf[:n]), " canary\n") {
			reply = "drain 100%\n"
		}
		_, _ = conn.Write([]byte(reply))
		_ = conn.Close()
	}
}

// TestHAProxy: a real HAProxy takes the configuration, asks the agent, moves
// the traffic, survives a reload without a failed request and goes away.
func TestHAProxy(t *testing.T) {
	binary := testpeer.Need(t, "haproxy")
	ctx, cancel := context.WithCancel(within(t))
	group, ctx := errgroup.WithContext(ctx)
	defer func() {
		cancel()
		if err := group.Wait(); err != nil {
			t.Error(err)
		}
	}()

	webs, err := listenWeb(site())
	if err != nil {
		t.Fatal(err)
	}
	agentListener, frontend := listen(t), listen(t)
	url := "http://" + frontend.Addr().String()
	group.Go(func() error { return serveWeb(ctx, webs) })
	group.Go(func() error { return agent(ctx, agentListener) })
	dir := t.TempDir()
	cfg := haproxyConfig{agent: agentListener.Addr().(*net.TCPAddr), servers: webs}
	h, err := startHAProxy(ctx, binary, dir, cfg, frontend, listen(t))
	if err != nil {
		t.Fatal(err)
	}
	group.Go(func() error { return h.run(ctx) })
	client := newTraffic(url)
	group.Go(func() error { return client.run(ctx) })

	canaries := inGroup(site(), "canary")
	drained := func() bool { return len(canaries) == drainedServers(t, ctx, h.socket) }
	eventually(t, ctx, "canaries in drain", drained)
	eventually(t, ctx, "30 answers from the others", func() bool { return client.counts().quiet(canaries...) >= 30 })

	before, after, err := h.reload(ctx)
	if err != nil || before == after {
		t.Fatalf("reload: worker %d, then %d, %v", before, after, err)
	}
	eventually(t, ctx, "canaries in drain in the new worker", drained)
	if c := client.counts(); c.failed != 0 || len(c.served) < 5 {
		t.Errorf("%d failed (%s), served %v", c.failed, c.lastError, c.served)
	}
}

func drainedServers(t *testing.T, ctx context.Context, socket string) int {
	t.Helper()
	rows, err := haproxy.ServersState(ctx, socket)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, s := range rows {
		if !s.Agent.Enabled() || s.InitialWeight != 100 {
			t.Errorf("%s: agent %v, weight %d: not enrolled as documented", s.Key(), s.Agent, s.InitialWeight)
		}
		if s.Admin == haproxy.FDRAIN {
			n++
		}
	}
	return n
}

// TestHAProxyRefuses: what HAProxy says about a bad configuration reaches the
// user, and nothing is left running.
func TestHAProxyRefuses(t *testing.T) {
	binary := testpeer.Need(t, "haproxy")
	webs, err := listenWeb([]server{{backend: "web", name: "a b"}})
	if err != nil {
		t.Fatal(err)
	}
	defer closeWeb(webs)
	agentListener := listen(t)
	cfg := haproxyConfig{agent: agentListener.Addr().(*net.TCPAddr), servers: webs}
	_, err = startHAProxy(within(t), binary, t.TempDir(), cfg, listen(t), listen(t))
	if err == nil || !strings.Contains(err.Error(), "haproxy ended by itself") || !strings.Contains(err.Error(), "ALERT") {
		t.Errorf("error %v", err)
	}
}

func TestQuiet(t *testing.T) {
	c := &counts{}
	for _, key := range []string{"a", "b", "a", "c", "c"} {
		c = c.with(outcome{key: key}, nil)
	}
	c = c.with(outcome{err: errors.New("refused")}, nil)
	for _, want := range []struct {
		quiet int
		keys  []string
	}{{2, []string{"a"}}, {3, []string{"b"}}, {2, []string{"a", "b"}}, {0, []string{"c"}}, {5, []string{"never"}}} {
		if got := c.quiet(want.keys...); got != want.quiet {
			t.Errorf("quiet(%v) = %d, want %d", want.keys, got, want.quiet)
		}
	}
	if c.answers != 5 || c.failed != 1 || c.lastError != "refused" {
		t.Errorf("counts %+v", c)
	}
}

func TestView(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	const head = "# hadrain state v1 root=hadrain id=1 index=7 rendered=2026-09-09T12:00:03Z host=h\n"
	data := statefile.Seal([]byte(head + "canary   drain\nweb/web-02   50%\n"))
	if err := statefile.Write(path, data); err != nil {
		t.Fatal(err)
	}
	v := view{servers: site(), state: statefile.NewReader(path)}
	p := v.look(within(t))
	for i, want := range []string{"ready", "50%", "ready", "drain (canary)"} {
		if got := p.lines[i].desired; got != want {
			t.Errorf("%s: desired %q, want %q", p.lines[i].key, got, want)
		}
	}
	p.lines[0].live = &haproxy.Stat{Status: "UP", Weight: 6, Sessions: 2, Throttle: 6}
	p.lines[0].rate = 11
	var b strings.Builder
	p.write(&b, colour)
	got := strings.Split(b.String(), "\n")
	if want := "web/web-01        ready             \x1b[33mUP slow 6%     \x1b[0m       6         2          11"; got[2] != want {
		t.Errorf("got  %q\nwant %q", got[2], want)
	}
	if want := "web/gke-cny-web   drain (canary)    -                     -         -           -"; got[5] != want {
		t.Errorf("got  %q\nwant %q", got[5], want)
	}
}

// gone is a reader who has left.
type gone struct{}

func (gone) Write([]byte) (int, error) { return 0, syscall.EPIPE }

// hadrain dev | head must not run on where nobody sees it.
func TestViewEndsWithoutAReader(t *testing.T) {
	v := view{servers: site(), state: statefile.NewReader(filepath.Join(t.TempDir(), "state"))}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := v.run(ctx, gone{}); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("run = %v, want EPIPE", err)
	}
}

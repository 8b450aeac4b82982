package haproxy_test

import (
	"testing"

	"hadrain/internal/haproxy"
	"hadrain/internal/testpeer"
)

// liveConfig needs no agent: nobody listens on its port, which leaves the
// states alone, and every state is set through the socket.
const liveConfig = `
defaults
    mode http
    timeout connect 1s
    timeout client 1s
    timeout server 1s
frontend site
    bind "fd@${SITE}"
    default_backend web
backend web
    server s1 127.0.0.1:9 weight 200 agent-check agent-port 9 agent-inter 1m agent-send "web/s1\n"
    server s2 127.0.0.1:9 disabled
    server s3 127.0.0.1:9 track s1
`

// TestLive: what is set through the socket is what is read back, on every
// HAProxy at hand.
func TestLive(t *testing.T) {
	testpeer.EachHAProxy(t, func(t *testing.T, binary string) {
		h := testpeer.HAProxy(t, testpeer.HAProxyConfig{Binary: binary, Config: liveConfig, Listen: []string{"SITE"}, Plain: true})
		ctx, addr := within(t), h.StatsSocket()

		info, err := haproxy.ReadInfo(ctx, addr)
		if err != nil || info.PID != h.Pid() || info.Stopping {
			t.Fatalf("info %+v, %v; pid is %d", info, err, h.Pid())
		}
		for _, c := range []struct {
			cmd       string
			s1, s3    haproxy.Admin
			percent   int
			enabled   bool
			firstWord string
		}{
			{"set server web/s1 state ready", 0, 0, 100, true, "no"},
			{"set server web/s1 weight 25%", 0, 0, 25, true, "no"},
			{"set server web/s1 state drain", haproxy.FDRAIN, haproxy.IDRAIN, 25, true, "DRAIN"},
			{"set server web/s1 state maint", haproxy.FMAINT, haproxy.IMAINT, 25, true, "MAINT"},
			{"disable agent web/s1", haproxy.FMAINT, haproxy.IMAINT, 25, false, "MAINT"},
			{"set server web/s1 state ready", 0, 0, 25, false, "no"},
		} {
			if _, err := haproxy.Command(ctx, addr, c.cmd); err != nil {
				t.Fatal(err)
			}
			rows, err := haproxy.ServersState(ctx, addr)
			if err != nil || len(rows) != 3 {
				t.Fatalf("rows %v, %v", rows, err)
			}
			s1, s2, s3 := rows[0], rows[1], rows[2]
			if s1.Admin != c.s1 || s3.Admin != c.s3 || s1.Percent() != c.percent || s1.Agent.Enabled() != c.enabled || !s1.Agent.Enrolled() {
				t.Errorf("after %q: s1 %+v, s3 %+v", c.cmd, s1, s3)
			}
			if s2.Admin != haproxy.FMAINT|haproxy.CMAINT || s2.Agent.Enrolled() {
				t.Errorf("disabled server: %+v", s2)
			}
			if got := liveStat(t, addr, "web/s1"); got.State() != c.firstWord || got.Kind != haproxy.StatServer {
				t.Errorf("after %q: %+v", c.cmd, got)
			}
		}
	})
}

func liveStat(t *testing.T, addr, key string) haproxy.Stat {
	t.Helper()
	rows, err := haproxy.Stats(within(t), addr)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range rows {
		if s.Key() == key {
			return s
		}
	}
	t.Fatalf("no row %s in %v", key, rows)
	return haproxy.Stat{}
}

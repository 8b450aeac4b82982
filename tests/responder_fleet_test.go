package tests_test

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"hadrain/internal/desired"
	"hadrain/internal/haproxy"
	"hadrain/internal/testpeer"
)

// A thousand servers of a real HAProxy ask every second: each follows its key
// whenever the file changes, and no check fails in a minute.
func TestThousandServers(t *testing.T) {
	const servers = 1000
	s := newService(t, nil)
	h := testpeer.HAProxy(t, testpeer.HAProxyConfig{Config: s.haproxyConfig(servers), Plain: true})
	start, slowest := time.Now(), time.Duration(0)
	rounds := 0
	for ; rounds < 4 || time.Since(start) < time.Minute; rounds++ {
		rows := shifted(servers, rounds)
		changed := time.Now()
		s.write(uint64(rounds+2), rows)
		testpeer.WaitFor(t, "every server to follow", func() (bool, string) { return following(t, h, rows) })
		slowest = max(slowest, time.Since(changed))
	}
	t.Logf("%d changes in %v, all servers followed within %v", rounds, time.Since(start).Round(time.Millisecond), slowest.Round(time.Millisecond))
	if slowest > 10*time.Second {
		t.Errorf("a change took %v to reach all servers, with agent-inter 1s", slowest)
	}
	if failed := failedChecks(h); len(failed) > 0 {
		t.Errorf("%d checks failed, such as %s", len(failed), failed[0])
	}
	// What is not there proves something only if it would be there.
	s.process.Kill(t)
	testpeer.WaitFor(t, "HAProxy to say that a check failed", func() (bool, string) {
		return len(failedChecks(h)) > 0, h.Output()
	})
}

func (s *service) haproxyConfig(servers int) string {
	s.t.Helper()
	host, port, err := net.SplitHostPort(s.agent.Addr().String())
	if err != nil {
		s.t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("global\n log stdout format raw local0\ndefaults\n mode http\n log global\n option log-health-checks\n timeout connect 1s\n timeout client 1s\n timeout server 1s\nbackend web\n")
	for i := range servers {
		fmt.Fprintf(&b, " server s%04d 127.0.0.1:1 weight 100 agent-check agent-inter 1s agent-addr %s agent-port %s agent-send \"web/s%04d canary\\n\"\n", i, host, port, i)
	}
	return b.String()
}

// shifted returns rows in four states, others each round.
func shifted(servers, round int) []desired.Row {
	half, err := desired.Weight(50)
	if err != nil {
		panic(err)
	}
	states := []desired.State{desired.Ready, desired.Drain, desired.Maint, half}
	var rows []desired.Row
	for i := range servers {
		rows = append(rows, desired.Row{Key: fmt.Sprintf("web/s%04d", i), State: states[(i+round)%len(states)]})
	}
	return rows
}

// following reports whether each server is in the state of its row.
func following(t *testing.T, h *testpeer.HAProxyServer, rows []desired.Row) (all bool, detail string) {
	t.Helper()
	servers, err := haproxy.ServersState(t.Context(), h.StatsSocket())
	if err != nil {
		t.Fatal(err)
	}
	behind := 0
	for i, s := range servers {
		admin, percent := haproxy.Admin(0), 100
		switch rows[i].State {
		case desired.Drain:
			admin = haproxy.FDRAIN
		case desired.Maint:
			admin = haproxy.FMAINT
		default:
			if p, ok := rows[i].State.Percent(); ok {
				percent = p
			}
		}
		if s.Key() != rows[i].Key || s.Admin != admin || s.Percent() != percent {
			behind++
		}
	}
	return behind == 0 && len(servers) == len(rows), fmt.Sprintf("%d of %d are behind", behind, len(servers))
}

// failedChecks returns what HAProxy logged about checks that failed.
func failedChecks(h *testpeer.HAProxyServer) []string {
	return slices.DeleteFunc(strings.Split(h.Output(), "\n"), func(line string) bool {
		return !strings.Contains(line, "Agent check for server") || !strings.Contains(line, "failed")
	})
}

package tests_test

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A drain, a return, weights and holds, under traffic that never fails.
func TestNginxFollowsUnderTraffic(t *testing.T) {
	n := newNginxStack(t)
	p, nginx := n.start()
	n.traffic()
	n.wantServers(p, n.names...)

	// A request that is running when its server is drained is finished by it.
	n.put("web/web-01", "maint")
	n.put("web/web-02", "maint")
	n.wantServers(p, "canary")
	answer := make(chan string, 1)
	go func() {
		name, err := n.get("/slow")
		answer <- fmt.Sprint(name, err)
	}()
	<-n.held
	n.delete("web/web-01")
	n.put("canary", "drain # chg-123")
	n.wantServers(p, "web-01")
	close(n.hold)
	if got := <-answer; got != "canary<nil>" {
		t.Errorf("the request that was running: %s, want an answer of canary", got)
	}
	n.wantLine(p, `server \S+ max_fails=0 weight=100 down; # web/gke-cny-web canary, drain`)

	// Weights; 0% is down, as nginx knows no such weight.
	n.put("web/web-02", "25%")
	n.wantLine(p, `server \S+ max_fails=0 weight=25; # web/web-02`)
	n.wantServers(p, "web-01", "web-02")
	n.put("web/web-02", "0%")
	n.wantServers(p, "web-01")

	// Hold leaves a server as it is, whatever happens to others.
	n.put("canary", "hold")
	n.put("web/web-02", "ready")
	n.wantServers(p, "web-01", "web-02")
	n.wantLine(p, `server \S+ max_fails=0 weight=100 down; # web/gke-cny-web canary, drain`)
	n.delete("canary")
	n.wantServers(p, n.names...)

	if failed := n.failed.Load(); failed > 0 {
		t.Errorf("%d requests failed, the last one: %v\n%s", failed, n.failure.Load(), nginx.Output())
	}
	if got := n.templateMetric("failures_total"); got != 0 {
		t.Errorf("%v template failures, want none", got)
	}
}

// What nginx -t refuses never reaches the nginx that runs.
func TestNginxNeverGetsABrokenConfiguration(t *testing.T) {
	n := newNginxStack(t)
	p, nginx := n.start()
	n.traffic()
	n.wantServers(p, n.names...)
	broken := filepath.Join(n.dir, "conf", "broken.conf")
	write(t, broken, "no_such_directive on;\n")
	n.put("web/web-01", "drain")
	p.WaitOutput(t, `unknown directive \"no_such_directive\"`)
	n.wantLine(p, `server \S+ max_fails=0 weight=100; # web/web-01$`)
	n.wantServers(p, n.names...)
	if got := n.templateMetric("failures_total"); got != 1 {
		t.Errorf("%v template failures, want 1", got)
	}
	if got := n.templateMetric("stale"); got != 1 {
		t.Errorf("the metric of a stale template is %v, want 1", got)
	}

	// Mended: a reload of render tries again at once, and the next change would.
	if err := os.Remove(broken); err != nil {
		t.Fatal(err)
	}
	p.Signal(syscall.SIGHUP)
	n.wantServers(p, "web-02", "canary")
	p.WaitOutput(t, "the template is applied again")
	if got := n.templateMetric("stale"); got != 0 {
		t.Errorf("the metric of a stale template is %v, want 0", got)
	}
	n.put("canary", "drain")
	n.wantServers(p, "web-02")
	if failed := n.failed.Load(); failed > 0 {
		t.Errorf("%d requests failed, the last one: %v\n%s", failed, n.failure.Load(), nginx.Output())
	}
}

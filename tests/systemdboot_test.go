package tests_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"hadrain/internal/haproxy"
	"hadrain/internal/testpeer"
)

// wait makes the gate wait as long as the test wants to see.
func (b *balancer) wait(limit string) {
	b.t.Helper()
	b.WriteFile(b.t, "/etc/default/hadrain", "CONSUL_HTTP_TOKEN_FILE=/etc/hadrain/consul.token\nHADRAIN_BOOT_WAIT="+limit+"\n")
}

// gateSays waits until HAProxy is up and returns what the gate has logged in
// this boot.
func (b *balancer) gateSays() string {
	b.t.Helper()
	b.eventually("systemctl", "is-active", "haproxy")
	return b.Exec(b.t, "journalctl", "-b", "-o", "cat", "-u", "hadrain-gate", "-t", "hadrain")
}

// Off for a week, and Consul is away when it comes back: HAProxy waits, goes on
// with the old file, and the drained server gets nothing from the first request.
func (b *balancer) testRebootWithoutConsul() {
	t := b.t
	b.reboot(func() {
		b.wait("3s")
		lastWeek := time.Now().Add(-7 * 24 * time.Hour)
		if err := os.Chtimes(b.Path("/var/lib/hadrain/state"), lastWeek, lastWeek); err != nil {
			t.Fatal(err)
		}
	})
	requests := startTraffic(b.Machine)
	defer requests.cancel()
	said := b.gateSays()
	if !strings.Contains(said, "no accepted read of Consul within 3s: HAProxy starts with 1 key, index ") || !strings.Contains(said, "(168h0m") {
		t.Errorf("the gate says %q", said)
	}
	if warnings := b.Exec(t, "journalctl", "-b", "-o", "cat", "-p", "warning", "-u", "hadrain-gate"); !strings.Contains(warnings, "no accepted read") {
		t.Errorf("the gate does not warn: %q", warnings)
	}
	b.expectCanary(haproxy.FDRAIN)
	if got := requests.stop(t, 100); got["gke-cny-web"] != 0 {
		t.Errorf("the drained server got %d requests: %v", got["gke-cny-web"], got)
	}
}

// A machine without a state, during a drain: HAProxy waits for the first read
// of a Consul that is late, and sends the canary nothing.
func (b *balancer) testNewMachine() {
	t := b.t
	b.reboot(func() {
		b.wait("30s")
		if err := os.RemoveAll(b.Path("/var/lib/hadrain")); err != nil {
			t.Fatal(err)
		}
	})
	requests := startTraffic(b.Machine)
	defer requests.cancel()
	b.Exec(t, "sleep", "2")
	if out, err := b.Try("systemctl", "is-active", "haproxy"); err == nil {
		t.Errorf("HAProxy does not wait: %s", out)
	}
	b.startConsul()
	if said := b.gateSays(); !strings.Contains(said, "a read of Consul was accepted") || !strings.Contains(said, "HAProxy starts with 1 key,") {
		t.Errorf("the gate says %q", said)
	}
	b.expectCanary(haproxy.FDRAIN)
	if got := requests.stop(t, 100); got["gke-cny-web"] != 0 {
		t.Errorf("the drained server got %d requests: %v", got["gke-cny-web"], got)
	}
	// It was for the boot: HAProxy restarts at once, also without Consul.
	b.Exec(t, "systemctl", "stop", "consul", "hadrain-render")
	start := time.Now()
	b.Exec(t, "systemctl", "restart", "haproxy")
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("a restart of HAProxy took %v", took)
	}
}

// Somebody who does not want the gate masks it.
func (b *balancer) testGateMasked() {
	t := b.t
	b.Exec(t, "systemctl", "mask", "hadrain-gate.service")
	b.reboot(func() {})
	b.eventually("systemctl", "is-active", "haproxy")
	if out, err := b.Try("systemctl", "is-active", "hadrain-gate"); err == nil {
		t.Errorf("the masked gate is %s", out)
	}
	b.expectCanary(haproxy.FDRAIN)
	b.Exec(t, "systemctl", "unmask", "hadrain-gate.service")
	b.testGateInRestart()
}

// The gate has never run in this boot, Consul is away, and somebody restarts
// HAProxy, as on a machine on which Hadrain was just installed. systemd stops the
// old HAProxy before it waits for anything: so there must be no waiting.
func (b *balancer) testGateInRestart() {
	t := b.t
	b.wait("60s")
	start := time.Now()
	b.Exec(t, "systemctl", "restart", "haproxy")
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("a restart of HAProxy took %v", took)
	}
	b.Exec(t, "systemctl", "is-active", "haproxy")
}

// IPv6 is switched off: the sockets of IPv4 are served.
func (b *balancer) testNoIPv6() {
	t := b.t
	b.reboot(func() {
		b.wait("0")
		b.WriteFile(t, "/etc/sysctl.d/99-test.conf", "net.ipv6.conf.all.disable_ipv6 = 1\nnet.ipv6.conf.lo.disable_ipv6 = 1\n")
	})
	if got := b.Exec(t, "cat", "/proc/sys/net/ipv6/conf/lo/disable_ipv6"); got != "1" {
		t.Fatalf("IPv6 is not off: disable_ipv6 = %s", got)
	}
	conn, err := b.Dial("tcp", "[::1]:9777")
	if err == nil {
		conn.Close()
		t.Error("[::1]:9777 answers")
	}
	load := startLoad(t, b.Machine, "web/gke-cny-web canary", "drain 100%", 0)
	load.atLeast(10)
	load.stop()
	for _, socket := range []string{"hadrain-responder.socket", "hadrain-responder-http.socket"} {
		b.Exec(t, "systemctl", "is-active", socket)
	}
	resp, err := b.HTTP().Get("http://127.0.0.1:9779/readyz")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Errorf("/readyz: %d", resp.StatusCode)
	}
}

// Nobody may raise what the units are exposed to without saying so here.
func TestUnitsAreHardened(t *testing.T) {
	t.Parallel()
	tool := testpeer.Need(t, "systemd-analyze")
	for unit, most := range map[string]string{ // tenths of systemd's exposure level
		"hadrain-responder.service": "4",
		"hadrain-gate.service":      "4",
		"hadrain-render.service":    "15",
	} {
		out, err := exec.Command(tool, "security", "--no-pager", "--offline=true", "--threshold="+most, "../units/"+unit).CombinedOutput()
		if err != nil {
			t.Errorf("%s is exposed more than %s tenths: %v\n%s", unit, most, err, out)
		}
	}
}

const watchdogConf = "/etc/systemd/system/hadrain-render.service.d/watchdog.conf"

func (b *balancer) renderPid() string {
	return b.Exec(b.t, "systemctl", "show", "--value", "-p", "MainPID", renderService)
}

// hangRender stops render from doing anything and returns its process. At rest it
// feeds the watchdog every ten seconds, so that this cannot wait for much less.
func (b *balancer) hangRender() string {
	b.WriteFile(b.t, watchdogConf, "[Service]\nWatchdogSec=15s\n")
	b.Exec(b.t, "systemctl", "daemon-reload")
	b.Exec(b.t, "systemctl", "restart", renderService)
	hung := b.renderPid()
	b.Exec(b.t, "kill", "-STOP", hung)
	return hung
}

// testHungRender waits until the watchdog has replaced it.
func (b *balancer) testHungRender(hung string) {
	testpeer.WaitFor(b.t, "the watchdog to replace render", func() (bool, string) {
		now := b.renderPid()
		return now != hung && now != "0", now
	})
	b.eventually("systemctl", "is-active", renderService)
	b.Exec(b.t, "rm", watchdogConf)
	b.Exec(b.t, "systemctl", "daemon-reload")
	b.Exec(b.t, "systemctl", "restart", renderService)
}

// testCrash makes render crash as a mistake in it would: Go's runtime ends then
// with the status that flags which are wrong have, for which systemd starts
// nothing again.
func (b *balancer) testCrash() {
	t := b.t
	before := b.renderPid()
	b.Exec(t, "kill", "-QUIT", before)
	testpeer.WaitFor(t, "render to be started again", func() (bool, string) {
		now := b.renderPid()
		return now != before && now != "0", now + b.Exec(t, "systemctl", "show", "-p", "Result,ExecMainCode,ExecMainStatus", renderService)
	})
	b.eventually("systemctl", "is-active", renderService)
}

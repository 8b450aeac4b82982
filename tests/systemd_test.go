package tests_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hadrain/internal/haproxy"
	"hadrain/internal/testpeer"
)

// A balancer is a load balancer as operators have it: a machine that booted
// systemd, with Debian's HAProxy, Hadrain's units and a Consul.
type balancer struct {
	*testpeer.Machine
	t *testing.T
}

// newBalancer boots a machine on which nothing of ours has ever run.
func newBalancer(t *testing.T) *balancer {
	t.Helper()
	b := &balancer{testpeer.NewMachine(t, "/"), t}
	testpeer.Need(t, "haproxy")
	b.WriteFile(t, "/etc/consul.d/test.hcl", `
server = true
bootstrap_expect = 1
data_dir = "/var/lib/consul"
bind_addr = "127.0.0.1"
disable_update_check = true
connect { enabled = false }
performance { raft_multiplier = 1 }
`)
	b.WriteFile(t, "/etc/systemd/system/consul.service", "[Service]\nExecStart=/usr/local/bin/consul agent -config-dir=/etc/consul.d\n")
	b.WriteFile(t, "/etc/haproxy/haproxy.cfg", haproxyConfig(t))
	b.boot()
	return b
}

// haproxyConfig is the documented one, with servers behind it and a socket.
func haproxyConfig(t *testing.T) string {
	t.Helper()
	documented, err := os.ReadFile("../docs/haproxy.cfg")
	if err != nil {
		t.Fatal(err)
	}
	var more strings.Builder
	more.WriteString("\nglobal\n    stats socket /run/haproxy/admin.sock mode 600 level admin\nfrontend alive\n    bind 127.0.0.1:8081\n    monitor-uri /\n")
	for port, name := range map[int]string{8001: "web-01", 8002: "web-02", 8003: "gke-cny-web"} {
		fmt.Fprintf(&more, "frontend app-%s\n    bind 127.0.0.1:%d\n    http-request return status 200 content-type text/plain string %s\n", name, port, name)
	}
	return string(documented) + more.String()
}

func (b *balancer) boot() {
	b.t.Helper()
	b.Boot(b.t, testpeer.Need(b.t, "consul")+":/usr/local/bin/consul")
}

// reboot shuts down, lets change edit the files, and boots again.
func (b *balancer) reboot(change func()) {
	b.t.Helper()
	b.Off(b.t)
	change()
	b.boot()
}

// copies are the files of an installation by where they come from.
var copies = map[string]string{
	"hadrain-responder.socket":      "/usr/lib/systemd/system/",
	"hadrain-responder-http.socket": "/usr/lib/systemd/system/",
	"hadrain-responder.service":     "/usr/lib/systemd/system/",
	"hadrain-render.service":        "/usr/lib/systemd/system/",
	"hadrain-render@.service":       "/usr/lib/systemd/system/",
	"hadrain-gate.service":          "/usr/lib/systemd/system/",
	"hadrain.sysusers":              "/usr/lib/sysusers.d/hadrain.conf",
	"hadrain.tmpfiles":              "/usr/lib/tmpfiles.d/hadrain.conf",
	"hadrain.default":               "/etc/default/hadrain",
}

// install does what installing the package does.
func (b *balancer) install() {
	b.t.Helper()
	for from, to := range copies {
		if strings.HasSuffix(to, "/") {
			to += from
		}
		b.Install(b.t, filepath.Join("../units", from), to, 0o644)
	}
	for _, name := range []string{"hadrain", "hadrain-render", "hadrain-responder"} {
		b.Install(b.t, testpeer.BuildPlain(b.t, name), "/usr/bin/"+name, 0o755)
	}
	b.Exec(b.t, "systemd-sysusers", "hadrain.conf")
	b.Exec(b.t, "systemd-tmpfiles", "--create", "hadrain.conf")
	b.Exec(b.t, "systemctl", "daemon-reload")
	b.Exec(b.t, "systemctl", "enable", "--no-block", "--now", "hadrain-responder.socket", "hadrain-responder-http.socket",
		"hadrain-responder.service", "hadrain-render.service", "hadrain-gate.service")
}

// startConsul starts it and waits until it can be written to.
func (b *balancer) startConsul() {
	b.t.Helper()
	b.Exec(b.t, "systemctl", "start", "consul")
	b.eventually("consul", "kv", "put", "test/ready", "yes")
}

// eventually runs a program until it succeeds.
func (b *balancer) eventually(name string, args ...string) {
	b.t.Helper()
	testpeer.WaitFor(b.t, name+" "+strings.Join(args, " "), func() (bool, string) {
		out, err := b.Try(name, args...)
		return err == nil, out
	})
}

// expectCanary waits until HAProxy has the canary in the given state.
func (b *balancer) expectCanary(admin haproxy.Admin) {
	b.t.Helper()
	testpeer.WaitFor(b.t, fmt.Sprintf("HAProxy to have the canary %v", admin), func() (bool, string) {
		states, err := haproxy.ServersState(b.t.Context(), b.Running("/run/haproxy/admin.sock"))
		if err != nil {
			return false, err.Error()
		}
		for _, s := range states {
			if s.Server == "gke-cny-web" {
				return s.Admin == admin, s.Admin.String()
			}
		}
		return false, "no such server"
	})
}

// Installing, the first drain, and everything that systemd and people do to a
// running machine.
func TestSystemd(t *testing.T) {
	t.Parallel()
	b := newBalancer(t)
	t.Run("first drain", func(t *testing.T) {
		b.t = t
		b.install()
		b.startConsul()
		b.Exec(t, "hadrain", "init")
		b.Exec(t, "systemctl", "enable", "--now", "haproxy")
		b.expectCanary(0)
		b.Exec(t, "hadrain", "drain", "canary", "--reason", "first try", "--yes")
		b.expectCanary(haproxy.FDRAIN)
	})
	if t.Failed() {
		t.FailNow()
	}
	t.Run("status", func(t *testing.T) { b.t = t; b.testStatus() })
	t.Run("under load", func(t *testing.T) { b.t = t; b.testUnderLoad() })
	t.Run("reboot without Consul", func(t *testing.T) { b.t = t; b.testRebootWithoutConsul() })
	t.Run("new machine", func(t *testing.T) { b.t = t; b.testNewMachine() })
	t.Run("gate masked", func(t *testing.T) { b.t = t; b.testGateMasked() })
	t.Run("IPv6 off", func(t *testing.T) { b.t = t; b.testNoIPv6() })
}

// testStatus reads what people read first.
func (b *balancer) testStatus() {
	t := b.t
	for _, unit := range []string{"hadrain-render.service", "hadrain-responder.service"} {
		testpeer.WaitFor(t, unit+" to say keys, index and age", func() (bool, string) {
			out := b.Exec(t, "systemctl", "status", "--no-pager", unit)
			return strings.Contains(out, `Status: "1 keys, index `) && strings.Contains(out, `s ago"`), out
		})
	}
}

// testUnderLoad does to the responder whatever systemd and people do, while
// HAProxy asks 200 times a second. No question may be refused or lost, and no
// answer may be wrong.
func (b *balancer) testUnderLoad() {
	t := b.t
	const service = "hadrain-responder.service"
	// A process that is killed takes along what it has accepted: a few
	// connections on a slow machine. HAProxy keeps its state and asks again.
	const atOnce = 5
	pid := func() string {
		return b.Exec(t, "systemctl", "show", "--value", "-p", "MainPID", service)
	}
	for _, tc := range []struct {
		name   string
		killed int64 // how often it dies of a signal that it cannot handle
		act    func()
	}{
		{"restart ten times", 0, func() {
			for range 10 {
				b.Exec(t, "systemctl", "restart", service)
			}
		}},
		{"kill eight times in 5 s", 8, func() {
			every := time.NewTicker(600 * time.Millisecond)
			defer every.Stop()
			for range 8 {
				b.Exec(t, "systemctl", "kill", "-s", "KILL", service)
				<-every.C
			}
		}},
		{"hung process", 1, func() {
			hung := pid()
			b.Exec(t, "kill", "-STOP", hung)
			testpeer.WaitFor(t, "the watchdog to replace it", func() (bool, string) {
				now := pid()
				return now != hung && now != "0", now
			})
		}},
		{"binary missing for a second", 1, func() {
			b.Exec(t, "mv", "/usr/bin/hadrain-responder", "/usr/bin/away")
			b.Exec(t, "systemctl", "kill", "-s", "KILL", service)
			b.Exec(t, "sleep", "1")
			b.Exec(t, "mv", "/usr/bin/away", "/usr/bin/hadrain-responder")
		}},
		{"daemon-reload", 0, func() { b.Exec(t, "systemctl", "daemon-reload") }},
		{"daemon-reexec", 0, func() { b.Exec(t, "systemctl", "daemon-reexec") }},
		{"reload", 0, func() { b.Exec(t, "systemctl", "reload", service) }},
		{"stop", 0, func() { b.Exec(t, "systemctl", "stop", service) }},
		{"restart of the socket of HTTP", 0, func() { b.Exec(t, "systemctl", "restart", "hadrain-responder-http.socket") }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			load := startLoad(t, b.Machine, "web/gke-cny-web canary", "drain 100%", tc.killed*atOnce)
			load.atLeast(50)
			tc.act()
			b.eventually("systemctl", "is-active", service)
			load.atLeast(50)
			load.stop()
		})
	}
}

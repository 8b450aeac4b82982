package tests_test

import (
	"fmt"
	"os"
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
	return newBalancerFrom(t, "/")
}

// newBalancerFrom is newBalancer with the files of another root file system.
func newBalancerFrom(t *testing.T, root string) *balancer {
	t.Helper()
	b := &balancer{testpeer.NewMachine(t, root), t}
	b.WriteFile(t, "/etc/consul.d/test.hcl", `
server = true
bootstrap_expect = 1
data_dir = "/var/lib/consul"
bind_addr = "127.0.0.1"
disable_update_check = true
connect { enabled = false }
performance { raft_multiplier = 1 }
acl {
  enabled = true
  default_policy = "deny"
  tokens { initial_management = "`+managementToken+`" }
}
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

// startConsul starts it and waits until it can be written to.
func (b *balancer) startConsul() {
	b.t.Helper()
	b.Exec(b.t, "systemctl", "start", "consul")
	b.eventually("consul", "kv", "put", "-token="+managementToken, "test/ready", "yes")
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
// running machine, with each version of systemd that there is.
func TestSystemd(t *testing.T) {
	t.Parallel()
	roots := testpeer.Roots(t)
	deb := packageFor(t)
	for name, root := range roots {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testSystemd(t, newBalancerFrom(t, root), deb)
		})
	}
}

func testSystemd(t *testing.T, b *balancer, deb string) {
	t.Log(b.Exec(t, "systemctl", "--version"))
	t.Run("install", func(t *testing.T) { b.t = t; b.testInstall(deb) })
	if t.Failed() {
		t.FailNow()
	}
	t.Run("drain", func(t *testing.T) {
		b.t = t
		b.Exec(t, "systemctl", "enable", "haproxy")
		b.expectCanary(0)
		b.Exec(t, "env", "CONSUL_HTTP_TOKEN="+managementToken, "hadrain", "drain", "canary", "--reason", "the next try", "--yes")
		b.expectCanary(haproxy.FDRAIN)
	})
	t.Run("status", func(t *testing.T) { b.t = t; b.testStatus() })
	t.Run("units", func(t *testing.T) { b.t = t; b.testUnits() })
	t.Run("crash", func(t *testing.T) { b.t = t; b.testCrash() })
	var hung string
	t.Run("hang", func(t *testing.T) { b.t = t; hung = b.hangRender() })
	t.Run("under load", func(t *testing.T) { b.t = t; b.testUnderLoad() })
	t.Run("hung render", func(t *testing.T) { b.t = t; b.testHungRender(hung) })
	t.Run("reboot without Consul", func(t *testing.T) { b.t = t; b.testRebootWithoutConsul() })
	t.Run("new machine", func(t *testing.T) { b.t = t; b.testNewMachine() })
	t.Run("gate masked", func(t *testing.T) { b.t = t; b.testGateMasked() })
	t.Run("IPv6 off", func(t *testing.T) { b.t = t; b.testNoIPv6() })
	t.Run("upgrade and moves", func(t *testing.T) { b.t = t; b.testUpgrade() })
	t.Run("settings", func(t *testing.T) { b.t = t; b.testSettings() })
}

// testStatus reads what people read first.
func (b *balancer) testStatus() {
	t := b.t
	for _, unit := range []string{"hadrain-render.service", "hadrain-responder.service"} {
		testpeer.WaitFor(t, unit+" to say keys, index and age", func() (bool, string) {
			out := b.Exec(t, "systemctl", "status", "--no-pager", unit)
			return strings.Contains(out, `Status: "1 key, index `) && strings.Contains(out, `s ago"`), out
		})
	}
}

// testUnits holds the units against what systemd and Consul say of them, and
// runs the one that needs an instance.
func (b *balancer) testUnits() {
	t := b.t
	for _, unit := range []string{"hadrain-responder.service", "hadrain-render.service", "hadrain-render@x.service", "hadrain-gate.service"} {
		// It also reports other packages' units that ours mention.
		out := b.Exec(t, "systemd-analyze", "verify", "--man=no", unit)
		if strings.Contains(out, "hadrain") {
			t.Errorf("systemd-analyze verify %s says\n%s", unit, out)
		}
	}
	b.Exec(t, "sh", "-ec", "cp -r /etc/consul.d /run/c; cp /usr/share/doc/hadrain/examples/consul/hadrain.hcl /run/c; consul validate /run/c")
	b.WriteFile(t, "/etc/hadrain/list.tmpl", `canary is {{ desired "canary" }}`+"\n")
	b.WriteFile(t, "/etc/default/hadrain-list", "HADRAIN_TEMPLATE=/etc/hadrain/list.tmpl:/etc/list:test -s /etc/list && id -un >/run/who\nINSTANCE_OPTIONS=--http.listen=127.0.0.1:9788\n")
	b.Exec(t, "systemctl", "start", "hadrain-render@list")
	b.eventually("grep", "-qx", "canary is drain", "/etc/list")
	b.eventually("grep", "-qx", "root", "/run/who")
	b.Exec(t, "curl", "-sf", "http://127.0.0.1:9788/readyz")
	b.Exec(t, "systemctl", "stop", "hadrain-render@list")
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

package tests_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hadrain/internal/testpeer"
)

const (
	renderService    = "hadrain-render.service"
	responderService = "hadrain-responder.service"
	agentSocket      = "hadrain-responder.socket"
	httpSocket       = "hadrain-responder-http.socket"
	canaryQuestion   = "web/gke-cny-web canary"
)

// testInstall takes one machine through the life of a package: dpkg first, then
// rpm. The parts follow each other.
func testInstall(t *testing.T, dist, next string) {
	b := newBalancer(t)
	b.Install(t, filepath.Join(dist, "hadrain_0.0.1-1_amd64.deb"), "/root/old.deb", 0o644)
	b.Install(t, filepath.Join(next, "hadrain_0.0.2-1_amd64.deb"), "/root/new.deb", 0o644)
	b.Install(t, filepath.Join(dist, "hadrain-0.0.1-1.x86_64.rpm"), "/root/old.rpm", 0o644)
	b.Install(t, filepath.Join(next, "hadrain-0.0.2-1.x86_64.rpm"), "/root/new.rpm", 0o644)
	b.Exec(t, "rm", "-f", "/var/lib/man-db/auto-update") // half a minute for nothing
	// Tokens are another test's subject.
	b.WriteFile(t, "/etc/consul.d/zz.hcl", "acl {\n  enabled = false\n  default_policy = \"allow\"\n}\n")
	b.startConsul()
	// The database of packages, made here so that it is no trace of ours.
	b.Exec(t, "rpm", "-qa")
	before := b.files()
	for _, part := range []struct {
		name string
		run  func()
	}{
		{"apt install", b.aptInstall},
		{"completion", b.completion},
		{"dpkg upgrade", func() { b.upgrade("dpkg", "-i", "/root/new.deb") }},
		{"an admin's wish", b.adminsWish},
		{"remove and reinstall", b.removeAndReinstall},
		{"purge", func() { b.purge(before) }},
		{"rpm install", b.rpmInstall},
		{"rpm upgrade", func() { b.upgrade("rpm", "-U", "--nodeps", "/root/new.rpm") }},
		{"rpm remove", func() { b.rpmRemove(before) }},
	} {
		if !t.Run(part.name, func(t *testing.T) { b.t = t; part.run() }) {
			t.FailNow()
		}
	}
}

// files lists what a package could leave behind.
func (b *balancer) files() []string {
	b.t.Helper()
	out := b.Exec(b.t, "find", "/etc", "/usr", "/var", "/run", "/opt", "/srv", "-xdev",
		"(", "-path", "/var/cache", "-o", "-path", "/var/log", "-o", "-path", "/var/tmp", "-o", "-path", "/var/lib/consul",
		"-o", "-path", "/var/lib/apt", "-o", "-path", "/var/lib/PackageKit", "-o", "-path", "/var/lib/dpkg", "-o", "-path", "/var/lib/rpm", "-o", "-path", "/root",
		"-o", "-path", "/usr/local", "-o", "-path", "/usr/src", "-o", "-path", "/run/systemd", "-o", "-path", "/run/log",
		"-o", "-path", "/run/credentials", ")", "-prune", "-o", "-print")
	list := strings.Split(out, "\n")
	slices.Sort(list)
	return list
}

// left returns what is there now and was not before.
func (b *balancer) left(before []string) []string {
	b.t.Helper()
	return slices.DeleteFunc(b.files(), func(path string) bool {
		_, found := slices.BinarySearch(before, path)
		// systemd keeps notes on what it ran, and copies of the users' files.
		return found || strings.HasPrefix(path, "/var/lib/systemd/") && !strings.Contains(path, "hadrain") ||
			slices.Contains([]string{"/etc/passwd-", "/etc/group-", "/etc/shadow-", "/etc/gshadow-", "/etc/.pwd.lock"}, path)
	})
}

func (b *balancer) show(unit, property string) string {
	b.t.Helper()
	return b.Exec(b.t, "systemctl", "show", "--value", "-p", property, unit)
}

// expectUnits wants units to be active or not, and enabled or not.
func (b *balancer) expectUnits(active, enabled string, units ...string) {
	b.t.Helper()
	for _, unit := range units {
		testpeer.WaitFor(b.t, unit+" to be "+active+" and "+enabled, func() (bool, string) {
			got := b.show(unit, "ActiveState") + " " + b.show(unit, "UnitFileState")
			return got == active+" "+enabled, got
		})
	}
}

// expectDrained waits until the responder says that the canary is drained.
func (b *balancer) expectDrained() {
	b.t.Helper()
	testpeer.WaitFor(b.t, "the canary to be drained", func() (bool, string) {
		out, err := b.Try("hadrain", append([]string{"query"}, strings.Fields(canaryQuestion)...)...)
		return err == nil && strings.Contains(out, "drain 100%"), out
	})
}

func (b *balancer) aptInstall() {
	t := b.t
	b.Exec(t, "apt-get", "-qq", "-y", "install", "/root/old.deb")
	b.expectVersion(oldVersion)
	b.expectUnits("active", "enabled", agentSocket, httpSocket, responderService)
	b.expectUnits("inactive", "enabled", "hadrain-gate.service") // for the next boot of HAProxy
	b.Exec(t, "hadrain", "init")
	b.Exec(t, "hadrain", "drain", "canary", "--reason", "first try", "--yes")
	b.expectUnits("active", "enabled", renderService)
	b.expectDrained()
	if out := b.Exec(t, "man", "-P", "cat", "hadrain-drain"); !strings.Contains(out, "hadrain drain SEL...") {
		t.Errorf("man hadrain-drain:\n%s", out)
	}
}

// completion asks bash as somebody does who presses tab.
func (b *balancer) completion() {
	t := b.t
	const library = "/usr/share/bash-completion/bash_completion"
	if _, err := os.Stat(library); err != nil {
		testpeer.Missing(t, library+" (apt-get install bash-completion)")
	}
	out := b.Exec(t, "bash", "-c", `. "$0"; . /usr/share/bash-completion/completions/hadrain
		COMP_LINE="hadrain undrain can" COMP_POINT=19 COMP_WORDS=(hadrain undrain can) COMP_CWORD=2
		__start_hadrain 2>/dev/null; echo "${COMPREPLY[@]}"`, library)
	if strings.TrimSpace(out) != "canary" {
		t.Errorf("bash completes %q, want canary", out)
	}
}

func (b *balancer) expectVersion(version string) {
	b.t.Helper()
	if got := b.Exec(b.t, "hadrain", "version"); got != "hadrain "+version {
		b.t.Errorf("hadrain version says %q, want %s", got, version)
	}
}

// upgrade upgrades while HAProxy asks 200 times a second: the services are
// others afterwards, the sockets are the same, and no check notices.
func (b *balancer) upgrade(command ...string) {
	t := b.t
	pids := []string{b.show(responderService, "MainPID"), b.show(renderService, "MainPID")}
	since := []string{b.show(agentSocket, "ActiveEnterTimestampMonotonic"), b.show(httpSocket, "ActiveEnterTimestampMonotonic")}
	load := startLoad(t, b.Machine, canaryQuestion, "drain 100%", 0)
	load.atLeast(50)
	b.Exec(t, command[0], command[1:]...)
	load.atLeast(200)
	load.stop()
	b.expectVersion(newVersion)
	b.expectUnits("active", "enabled", agentSocket, httpSocket, responderService, renderService)
	for i, service := range []string{responderService, renderService} {
		pid := b.show(service, "MainPID")
		if pid == pids[i] {
			t.Errorf("%s was not restarted", service)
		}
		if exe := b.Exec(t, "readlink", "/proc/"+pid+"/exe"); strings.HasSuffix(exe, "(deleted)") {
			t.Errorf("%s runs %s", service, exe)
		}
	}
	for i, socket := range []string{agentSocket, httpSocket} {
		if b.show(socket, "ActiveEnterTimestampMonotonic") != since[i] {
			t.Errorf("%s was restarted", socket)
		}
	}
}

// adminsWish switches some units off in the ways that there are, and changes the
// settings; another version must not know better.
func (b *balancer) adminsWish() {
	t := b.t
	b.Exec(t, "systemctl", "stop", renderService) // enabled: it is back at the next boot
	b.Exec(t, "systemctl", "stop", responderService, httpSocket)
	b.Exec(t, "systemctl", "disable", httpSocket)
	b.Exec(t, "systemctl", "mask", "hadrain-gate.service")
	b.Exec(t, "sh", "-c", "echo '# mine' >>/etc/default/hadrain")
	b.Exec(t, "dpkg", "-i", "/root/old.deb")
	b.expectVersion(oldVersion)
	b.expectUnits("inactive", "enabled", renderService)
	b.expectUnits("inactive", "disabled", httpSocket)
	b.expectUnits("inactive", "masked", "hadrain-gate.service")
	b.expectUnits("active", "enabled", agentSocket)
	b.Exec(t, "grep", "-q", "^# mine", "/etc/default/hadrain")
	b.expectDrained()
	b.Exec(t, "systemctl", "unmask", "hadrain-gate.service")
}

// removeAndReinstall: settings, the last state and what was disabled survive.
func (b *balancer) removeAndReinstall() {
	t := b.t
	b.Exec(t, "dpkg", "-r", "hadrain")
	if out := b.Exec(t, "systemctl", "list-units", "--all", "--no-legend", "--plain", "hadrain*"); strings.Contains(out, "running") || strings.Contains(out, "listening") {
		t.Errorf("after the removal:\n%s", out)
	}
	if conn, err := b.Dial("tcp", "127.0.0.1:9777"); err == nil {
		conn.Close()
		t.Error("after the removal somebody still answers on the agent's port")
	}
	b.Exec(t, "test", "-s", "/var/lib/hadrain/state")
	b.Exec(t, "systemctl", "stop", "consul") // so that only the file can say it
	b.Exec(t, "dpkg", "-i", "/root/old.deb")
	b.expectUnits("active", "enabled", agentSocket, responderService)
	b.expectUnits("inactive", "disabled", httpSocket)
	b.expectDrained()
	b.Exec(t, "grep", "-q", "^# mine", "/etc/default/hadrain")
	b.startConsul()
	b.expectUnits("active", "enabled", renderService)
}

// purge wants the machine as it was before the first installation, but for the
// user: its number may own files in backups.
func (b *balancer) purge(before []string) {
	t := b.t
	b.Exec(t, "dpkg", "-P", "hadrain")
	if left := b.left(before); len(left) > 0 {
		t.Errorf("a purge leaves %q", left)
	}
	if out := b.Exec(t, "getent", "passwd", "hadrain"); !strings.HasSuffix(out, ":/usr/sbin/nologin") {
		t.Errorf("the user is now %q", out)
	}
}

// rpmInstall installs on the machine that dpkg was on. It is Debian's, so rpm
// knows none of what the package depends on.
func (b *balancer) rpmInstall() {
	b.Exec(b.t, "rpm", "-i", "--nodeps", "/root/old.rpm")
	b.expectVersion(oldVersion)
	b.expectUnits("active", "enabled", agentSocket, httpSocket, responderService, renderService)
	b.expectDrained()
}

// rpmRemove: rpm knows no purge, so the state and changed settings may stay.
func (b *balancer) rpmRemove(before []string) {
	t := b.t
	b.Exec(t, "rpm", "-e", "hadrain")
	shared := []string{ // other packages own these where rpm is at home
		"/usr/share/fish", "/usr/share/fish/vendor_completions.d", "/usr/share/licenses", "/usr/share/zsh/site-functions",
	}
	for _, path := range b.left(before) {
		if !slices.Contains(shared, path) && !strings.HasPrefix(path, "/var/lib/hadrain") && !strings.HasPrefix(path, "/run/hadrain") {
			t.Errorf("rpm -e leaves %s", path)
		}
	}
	if conn, err := b.Dial("tcp", "127.0.0.1:9777"); err == nil {
		conn.Close()
		t.Error("after the removal somebody still answers on the agent's port")
	}
}

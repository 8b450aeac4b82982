package testpeer

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// A Machine is a root file system that a real systemd boots from, in namespaces
// of its own: what it writes goes to memory and is gone when the test ends. Its
// loopback is its own, and so are its process ids and its cgroup.
//
// It can be switched off and booted again; its files stay.
type Machine struct {
	t      testing.TB
	name   string
	dir    string   // mount point, in the name space of holder only
	holder *Process // keeps the mounts
	nspawn *Process // nil while switched off
	leader int      // its PID 1, as seen from here
	net    *os.File // its network name space
}

// machines numbers the machines of this process.
var machines atomic.Int32

// NewMachine returns a machine that is switched off, with the files of the root
// file system lower, "/" for this machine's own, without its enabled services.
// It skips the test without root's rights or systemd-nspawn.
func NewMachine(t testing.TB, lower string) *Machine {
	t.Helper()
	if os.Geteuid() != 0 {
		Missing(t, "root, to boot a systemd")
	}
	Need(t, "systemd-nspawn")
	m := &Machine{t: t, dir: Dir(t), name: fmt.Sprintf("hadrain-test-%d-%d", os.Getpid(), machines.Add(1))}
	m.holder = Start(t, exec.Command("unshare", "--mount", "--propagation", "private", "sh", "-ec", overlay, m.dir, lower))
	m.holder.WaitOutput(t, "mounted")
	m.strip(t)
	return m
}

// Roots returns the root file systems to boot machines from, by a name: that of
// this machine, and each one that .ci/rootfs has made, or that
// $HADRAIN_TEST_ROOTS lists, ':' between them.
func Roots(t testing.TB) map[string]string {
	t.Helper()
	list := filepath.SplitList(os.Getenv("HADRAIN_TEST_ROOTS"))
	if len(list) == 0 {
		made, err := filepath.Glob(filepath.Join(Root(t), ".ci/cache/rootfs/*/etc/os-release"))
		if err != nil {
			t.Fatal(err)
		}
		for _, release := range made {
			list = append(list, filepath.Dir(filepath.Dir(release)))
		}
	}
	roots := map[string]string{"host": "/"}
	for _, root := range list {
		roots[filepath.Base(root)] = root
	}
	return roots
}

// overlay is run with the mount point and the lower directory.
const overlay = `
mount -t tmpfs -o size=2g,mode=755 tmpfs "$0"
mkdir "$0/upper" "$0/work" "$0/root"
mount -t overlay overlay -o "lowerdir=$1,upperdir=$0/upper,workdir=$0/work" "$0/root"
echo mounted
exec sleep infinity`

// strip removes what a fresh server does not have: services of the machine that
// runs the tests, and what they would wait for.
func (m *Machine) strip(t testing.TB) {
	t.Helper()
	for _, pattern := range []string{
		"/etc/systemd/system/*.wants", "/etc/systemd/system/*.requires", "/etc/rc?.d", "/etc/fstab",
		"/usr/sbin/policy-rc.d", // as on servers: packages start their services
	} {
		paths, err := filepath.Glob(m.Path(pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			if err := os.RemoveAll(path); err != nil {
				t.Fatalf("clearing the machine's root: %v", err)
			}
		}
	}
	m.WriteFile(t, "/etc/hosts", "127.0.0.1 localhost\n::1 localhost\n")
	m.WriteFile(t, "/etc/systemd/journald.conf.d/test.conf", "[Journal]\nStorage=volatile\nRateLimitBurst=0\n")
	for _, unit := range []string{"console-getty.service", "systemd-networkd-wait-online.service", "systemd-timesyncd.service"} {
		m.symlink(t, "/dev/null", "/etc/systemd/system/"+unit)
	}
}

// Path returns where a file of the machine is for this process, also while it
// is switched off. /run, /tmp, /proc, /sys and /dev of a booted machine are not
// there: see [Machine.Running].
func (m *Machine) Path(path string) string {
	return filepath.Join(fmt.Sprintf("/proc/%d/root", m.holder.Pid()), m.dir, "root", path)
}

// WriteFile makes a file of the machine with mode 0644 and its directories.
func (m *Machine) WriteFile(t testing.TB, path, text string) {
	t.Helper()
	m.install(t, path, []byte(text), 0o644)
}

// Install copies a file of this machine into the machine.
func (m *Machine) Install(t testing.TB, from, to string, mode os.FileMode) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	m.install(t, to, data, mode)
}

func (m *Machine) install(t testing.TB, path string, data []byte, mode os.FileMode) {
	t.Helper()
	target := m.Path(path)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(target, data, mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(target, mode); err != nil { // whatever the umask is
		t.Fatal(err)
	}
}

func (m *Machine) symlink(t testing.TB, to, path string) {
	t.Helper()
	target := m.Path(path)
	if err := os.Remove(target); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if err := os.Symlink(to, target); err != nil {
		t.Fatal(err)
	}
}

// Boot switches the machine on and waits until basic.target is reached; its
// services are still starting then. Bind says what of this machine it sees,
// each "FROM:TO", read only.
func (m *Machine) Boot(t testing.TB, bind ...string) {
	t.Helper()
	args := []string{
		"-t", strconv.Itoa(m.holder.Pid()), "-m", "sh", "-ec", spawn, m.name,
		"-q", "-D", filepath.Join(m.dir, "root"), "-M", m.name,
		"--register=no", "--keep-unit", "--private-network", "--link-journal=no",
		"--resolv-conf=off", "--timezone=off", "--console=pipe",
		// Without bpf systemd ignores IPAddressDeny= in silence.
		"--system-call-filter=bpf", "--capability=all",
	}
	for _, b := range bind {
		args = append(args, "--bind-ro="+b)
	}
	// It may outlive t, which may be a part of the test that made the machine.
	m.nspawn = Start(m.t, exec.Command("nsenter", append(args, "-b", "--", "--unit=multi-user.target")...))
	m.t.Cleanup(func() { m.end(m.t) })
	WaitFor(t, "systemd to reach basic.target", func() (bool, string) {
		if m.nspawn.exited() {
			t.Fatalf("systemd-nspawn exited (%v):\n%s", m.nspawn.cmd.ProcessState, m.nspawn.Output())
		}
		if m.leader = systemdBelow(m.nspawn.Pid()); m.leader == 0 {
			return false, "no PID 1 yet"
		}
		out, err := m.Try("systemctl", "is-active", "basic.target")
		return err == nil, out
	})
	network, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", m.leader))
	if err != nil {
		t.Fatal(err)
	}
	m.net = network
}

// spawn moves itself into a cgroup of its own before it becomes systemd-nspawn,
// which makes its own cgroups below the one that it is in.
const spawn = `
for tree in /sys/fs/cgroup /sys/fs/cgroup/unified /sys/fs/cgroup/systemd; do
	[ -e "$tree/cgroup.procs" ] || continue
	mkdir -p "$tree/$0"
	echo $$ >"$tree/$0/cgroup.procs"
done
exec systemd-nspawn "$@"`

// systemdBelow returns the child of pid that is a systemd, 0 if there is none.
func systemdBelow(pid int) int {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		children, _ := os.ReadFile(list)
		for child := range strings.FieldsSeq(string(children)) {
			if comm, _ := os.ReadFile("/proc/" + child + "/comm"); string(comm) == "systemd\n" {
				n, _ := strconv.Atoi(child)
				return n
			}
		}
	}
	return 0
}

// end logs what the machine's journal says if the test failed, and switches it
// off.
func (m *Machine) end(t testing.TB) {
	if m.nspawn == nil {
		return
	}
	if t.Failed() {
		out, _ := m.Try("journalctl", "-b", "--no-pager", "-o", "short-precise", "-n", "300")
		t.Logf("journal of %s:\n%s", m.name, out)
	}
	m.Off(t)
}

// Off shuts the machine down and waits until it is off. Its files stay.
func (m *Machine) Off(t testing.TB) {
	t.Helper()
	out, err := m.Try("systemctl", "poweroff", "--no-block")
	if err != nil || !m.nspawn.awaitExit(Timeout(t)) {
		t.Errorf("switching %s off: %v, %s", m.name, err, out)
		m.nspawn.Kill(t)
	}
	m.nspawn, m.leader = nil, 0
	if m.net != nil {
		m.net.Close()
	}
	removeCgroups(t, m.name)
	if err := os.Remove("/run/systemd/nspawn/propagate/" + m.name); err != nil && !os.IsNotExist(err) {
		t.Errorf("removing what systemd-nspawn left behind: %v", err)
	}
}

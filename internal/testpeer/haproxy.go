package testpeer

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// HAProxyConfig says which HAProxy to start, and with what.
type HAProxyConfig struct {
	Binary string   // from [Need] or [HAProxies]; empty: what Need finds
	Config string   // the configuration; global sections add to the one with the stats socket
	Listen []string // for each name a listener on 127.0.0.1, for `bind "fd@${NAME}"`
	Plain  bool     // a single process; otherwise master and worker, which Reload needs
	Env    []string // more environment variables, "NAME=value"
}

// An HAProxyServer is a running HAProxy.
type HAProxyServer struct {
	*Process
	dir       string
	plain     bool
	listeners map[string]net.Addr
}

// HAProxy starts HAProxy and waits until its stats socket answers. Listeners
// are opened here and inherited, so no port is picked twice and none refuses a
// connection while HAProxy starts. It skips the test where there is no HAProxy.
func HAProxy(t testing.TB, cfg HAProxyConfig) *HAProxyServer {
	t.Helper()
	h := &HAProxyServer{dir: Dir(t), plain: cfg.Plain, listeners: map[string]net.Addr{}}
	h.write(t, "0-base.cfg", fmt.Sprintf("global\n stats socket %s mode 600 level admin\n", h.StatsSocket()))
	h.SetConfig(t, cfg.Config)
	cmd := h.command(t, cfg)
	for i, name := range cfg.Listen {
		file, addr := listenerFile(t, name)
		defer file.Close() // HAProxy has its own copy by then
		h.listeners[name] = addr
		cmd.ExtraFiles = append(cmd.ExtraFiles, file)
		cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d", name, 3+i))
	}
	h.Process = Start(t, cmd)
	WaitFor(t, "HAProxy's stats socket to answer", func() (bool, string) {
		if h.exited() {
			t.Fatalf("HAProxy exited (%v):\n%s", h.cmd.ProcessState, h.Output())
		}
		pid, err := h.workerPid()
		return err == nil, fmt.Sprintf("pid %q, err %v", pid, err)
	})
	h.awaitMaster(t)
	return h
}

func (h *HAProxyServer) command(t testing.TB, cfg HAProxyConfig) *exec.Cmd {
	t.Helper()
	binary := cfg.Binary
	if binary == "" {
		binary = Need(t, "haproxy")
	}
	args := []string{"-db", "-f", h.path("0-base.cfg"), "-f", h.path("1-test.cfg")}
	if !cfg.Plain {
		args = append(args, "-W", "-S", h.path("master.sock"))
	}
	cmd := exec.Command(binary, args...)
	cmd.Env = append(os.Environ(), cfg.Env...)
	return cmd
}

func listenerFile(t testing.TB, name string) (*os.File, net.Addr) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listening for %s: %v", name, err)
	}
	defer l.Close() // the file is a duplicate
	file, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatalf("duplicating the listener for %s: %v", name, err)
	}
	return file, l.Addr()
}

// Addr returns the address of the listener that was asked for by name, as
// "127.0.0.1:port".
func (h *HAProxyServer) Addr(name string) string { return h.listeners[name].String() }

// StatsSocket returns the path of the stats socket, level admin.
func (h *HAProxyServer) StatsSocket() string { return h.path("stats.sock") }

// SetConfig replaces the configuration for the next [HAProxyServer.Reload].
func (h *HAProxyServer) SetConfig(t testing.TB, config string) {
	t.Helper()
	h.write(t, "1-test.cfg", config)
}

// CLI sends one command to the stats socket and returns the answer.
func (h *HAProxyServer) CLI(t testing.TB, command string) string {
	t.Helper()
	return h.mustAsk(t, "stats.sock", command)
}

// MasterCLI sends one command to the master's socket and returns the answer.
func (h *HAProxyServer) MasterCLI(t testing.TB, command string) string {
	t.Helper()
	return h.mustAsk(t, "master.sock", command)
}

// Reload makes the master read its configuration anew and start a new worker
// (SIGUSR2), and waits until that one answers on the stats socket. The old
// worker may still be finishing its connections then.
func (h *HAProxyServer) Reload(t testing.TB) {
	t.Helper()
	if h.plain {
		t.Fatal("reloading HAProxy: started with Plain, it has no master to signal")
	}
	before, err := h.workerPid()
	if err != nil {
		t.Fatalf("reloading HAProxy: %v", err)
	}
	h.Signal(syscall.SIGUSR2)
	WaitFor(t, "HAProxy's new worker to answer", func() (bool, string) {
		now, err := h.workerPid()
		return err == nil && now != before, fmt.Sprintf("pid %q (was %q), err %v\n%s", now, before, err, h.Output())
	})
	h.awaitMaster(t)
}

// awaitMaster waits until the master has started, anew after a reload. Its
// worker answers earlier, and a signal that comes in between is lost (seen with
// 2.6.12). The master's socket is served by the loop that handles signals.
func (h *HAProxyServer) awaitMaster(t testing.TB) {
	t.Helper()
	if h.plain {
		return
	}
	WaitFor(t, "HAProxy's master to answer", func() (bool, string) {
		answer, err := h.ask("master.sock", "show proc")
		return err == nil && answer != "", fmt.Sprintf("%q, err %v", answer, err)
	})
}

var pidLine = regexp.MustCompile(`(?m)^Pid: (\d+)$`)

// workerPid returns the pid of the process behind the stats socket.
func (h *HAProxyServer) workerPid() (string, error) {
	info, err := h.ask("stats.sock", "show info")
	if err != nil {
		return "", err
	}
	match := pidLine.FindStringSubmatch(info)
	if match == nil {
		return "", fmt.Errorf("no Pid in the answer to show info: %q", info)
	}
	return match[1], nil
}

func (h *HAProxyServer) mustAsk(t testing.TB, socket, command string) string {
	t.Helper()
	answer, err := h.ask(socket, command)
	if err != nil {
		t.Fatalf("asking HAProxy %q: %v", command, err)
	}
	return answer
}

func (h *HAProxyServer) ask(socket, command string) (string, error) {
	conn, err := net.Dial("unix", h.path(socket))
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, command+"\n"); err != nil {
		return "", err
	}
	if socket == "master.sock" { // which unlike the worker's waits for more commands
		if err := conn.(*net.UnixConn).CloseWrite(); err != nil {
			return "", err
		}
	}
	answer, err := io.ReadAll(conn)
	return strings.TrimRight(string(answer), "\n"), err
}

func (h *HAProxyServer) path(name string) string { return filepath.Join(h.dir, name) }

func (h *HAProxyServer) write(t testing.TB, name, text string) {
	t.Helper()
	// HAProxy refuses a file whose last line does not end.
	if err := os.WriteFile(h.path(name), []byte(text+"\n"), 0o600); err != nil {
		t.Fatalf("writing HAProxy's configuration: %v", err)
	}
}

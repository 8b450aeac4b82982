package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hadrain/internal/desired"
	"hadrain/internal/statefile"
	"hadrain/internal/statefile/statefiletest"
	"hadrain/internal/testpeer"
)

// mainVariable makes the test binary the program itself.
const mainVariable = "HADRAIN_TEST_RESPONDER_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(mainVariable) != "" {
		main()
	}
	if what := os.Getenv(idleVariable); what != "" {
		var addr string
		var count int
		if _, err := fmt.Sscan(what, &addr, &count); err != nil {
			panic(err)
		}
		if err := idle(addr, count); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

// program returns the command that runs the program with args. It gets files as
// descriptors from 3 on, as systemd passes them, under the given names
// (LISTEN_FDNAMES, none if empty).
func program(names string, files []*os.File, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	if len(files) > 0 {
		// The shell knows the process id that LISTEN_PID must name.
		cmd = exec.Command("sh", append([]string{"-c", `LISTEN_PID=$$ exec "$0" "$@"`, os.Args[0]}, args...)...)
	}
	cmd.ExtraFiles = files
	// With the race detector a process would sleep for a second before it exits.
	cmd.Env = append(os.Environ(), mainVariable+"=1", "GORACE=atexit_sleep_ms=0")
	if len(files) > 0 {
		cmd.Env = append(cmd.Env, fmt.Sprintf("LISTEN_FDS=%d", len(files)))
	}
	if names != "" {
		cmd.Env = append(cmd.Env, "LISTEN_FDNAMES="+names)
	}
	return cmd
}

// listener returns the descriptor of a listener on a loopback port.
func listener(t *testing.T) (*os.File, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	file, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return file, l.Addr().String()
}

func ask(t *testing.T, addr, question string) string {
	t.Helper()
	network := "tcp"
	if strings.HasPrefix(addr, "/") {
		network = "unix"
	}
	c, err := net.Dial(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(testpeer.Timeout(t))); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, question+"\n"); err != nil {
		t.Fatal(err)
	}
	reply, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		t.Fatalf("asking %q: %q, %v", question, reply, err)
	}
	return strings.TrimSuffix(reply, "\n")
}

// stateFile writes a state file in which canary has the given state.
func stateFile(t *testing.T, canary desired.State) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "state")
	writeState(t, path, canary)
	return path
}

func writeState(t *testing.T, path string, canary desired.State) {
	t.Helper()
	f := &statefile.File{
		Head: statefile.Head{Root: "hadrain", ID: "6f1c", Index: 7, Host: "lb-1", Rendered: time.Now().UTC()},
		Rows: []desired.Row{{Key: "canary", State: canary}},
	}
	if err := statefile.Write(path, statefiletest.Format(f)); err != nil {
		t.Fatal(err)
	}
}

func TestSocketsFromSystemd(t *testing.T) {
	agent, agentAddr := listener(t)
	agent2, agent2Addr := listener(t)
	web, webAddr := listener(t)
	p := testpeer.Start(t, program("agent:http:agent", []*os.File{agent, web, agent2}, "--state", stateFile(t, desired.Drain)))
	for _, addr := range []string{agentAddr, agent2Addr} {
		if got := ask(t, addr, "web/a canary"); got != "drain 100%" {
			t.Errorf("asking %s: %q, want drain 100%%", addr, got)
		}
	}
	resp, err := http.Get("http://" + webAddr + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Errorf("/readyz: %d, want 200", resp.StatusCode)
	}
	if code := p.Stop(t); code != 0 {
		t.Errorf("exit status %d after SIGTERM, want 0", code)
	}
}

func TestUnnamedSocketIsForTheAgent(t *testing.T) {
	agent, addr := listener(t)
	testpeer.Start(t, program("", []*os.File{agent}, "--state", stateFile(t, desired.Maint)))
	if got := ask(t, addr, "canary"); got != "maint 100%" {
		t.Errorf("got %q, want maint 100%%", got)
	}
}

func TestWrongSockets(t *testing.T) {
	stream, _ := listener(t)
	packet, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer packet.Close()
	datagram, err := packet.(*net.UDPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	defer datagram.Close()
	plain, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	for _, tc := range []struct {
		name, names string
		files       []*os.File
		args        []string
		want        string
	}{
		{"unknown name", "web", []*os.File{stream}, nil, `socket "web" from systemd: unknown name, want FileDescriptorName=agent or http`},
		{"name of a unit", "hadrain-responder.socket", []*os.File{stream}, nil, "unknown name"},
		{"datagram", "agent", []*os.File{datagram}, nil, `socket "agent" from systemd: not a stream socket`},
		{"no socket", "agent", []*os.File{plain}, nil, `socket "agent" from systemd: not a socket`},
		{"only http", "http", []*os.File{stream}, nil, "no socket for agent checks"},
		{"and --listen", "agent", []*os.File{stream}, []string{"--listen", "127.0.0.1:0"}, "--listen (HADRAIN_LISTEN) given, but systemd passed the sockets"},
		{"and --http.listen", "agent:http", []*os.File{stream, stream}, []string{"--http.listen", "127.0.0.1:0"}, "--http.listen (HADRAIN_HTTP_LISTEN) given, but"},
		{"bad address", "", nil, []string{"--listen", "9777"}, `listening on "9777": want host:port`},
		{"no connections", "", nil, []string{"--max-connections", "0"}, "--max-connections and --max-rows: want at least 1"},
		{"argument", "", nil, []string{"canary"}, "unknown command"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := testpeer.Start(t, program(tc.names, tc.files, append(tc.args, "--state", "/nonexistent/state")...))
			code := p.WaitExit(t)
			if code != 2 || !strings.Contains(p.Output(), tc.want) {
				t.Errorf("exit status %d, %q, want 2 and %q", code, p.Output(), tc.want)
			}
		})
	}
}

func TestSocketActivate(t *testing.T) {
	tool := testpeer.Need(t, "systemd-socket-activate")
	agent := filepath.Join(testpeer.Dir(t), "agent")
	cmd := exec.Command(tool, "-E", mainVariable, "-l", agent, "--fdname=agent", os.Args[0], "--state", stateFile(t, desired.Drain))
	cmd.Env = append(os.Environ(), mainVariable+"=1")
	p := testpeer.Start(t, cmd)
	p.WaitOutput(t, "Listening on")
	if got := ask(t, agent, "canary"); got != "drain 100%" {
		t.Errorf("got %q, want drain 100%%", got)
	}
	if code := p.Stop(t); code != 0 {
		t.Errorf("exit status %d, want 0", code)
	}
}

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
	"syscall"
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
		Root: "hadrain", ID: "6f1c", Index: 7, Host: "lb-1", Rendered: time.Now().UTC(),
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

// A restart under somebody who holds the socket loses no check: they queue.
func TestRestartLosesNothing(t *testing.T) {
	agent, addr := listener(t)
	path := stateFile(t, desired.Drain)
	start := func() *testpeer.Process {
		return testpeer.Start(t, program("agent", []*os.File{agent}, "--state", path))
	}
	p := start()
	done, asked := make(chan struct{}), make(chan int, 1)
	go func() {
		n := 0
		for {
			select {
			case <-done:
				asked <- n
				return
			default:
			}
			if got := ask(t, addr, "canary"); got != "drain 100%" {
				t.Errorf("got %q, want drain 100%%", got)
			}
			n++
		}
	}()
	for range 5 {
		p.WaitOutput(t, "answering agent checks")
		if code := p.Stop(t); code != 0 {
			t.Errorf("exit status %d, want 0", code)
		}
		p = start()
	}
	p.WaitOutput(t, "answering agent checks")
	close(done)
	if n := <-asked; n == 0 {
		t.Error("nothing was asked")
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

// systemd hears what it needs to hear, also while there is no state file.
func TestNotifies(t *testing.T) {
	dir := testpeer.Dir(t)
	address := &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"}
	notify, err := net.ListenUnixgram("unixgram", address)
	if err != nil {
		t.Fatal(err)
	}
	defer notify.Close()
	if err := notify.SetReadDeadline(time.Now().Add(testpeer.Timeout(t))); err != nil {
		t.Fatal(err)
	}
	hear := func(want string) {
		t.Helper()
		var b [256]byte
		for {
			n, err := notify.Read(b[:])
			if err != nil {
				t.Fatalf("waiting for %s: %v", want, err)
			}
			if got := string(b[:n]); strings.HasPrefix(got, want) {
				return
			}
		}
	}
	path := filepath.Join(dir, "state")
	cmd := program("", nil, "--state", path, "--listen", filepath.Join(dir, "agent"), "--http.listen", "")
	cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+address.Name, "WATCHDOG_USEC=200000")
	p := testpeer.Start(t, cmd)
	hear("READY=1")
	hear("WATCHDOG=1")
	if got := ask(t, filepath.Join(dir, "agent"), "canary"); got != "unsynced" {
		t.Errorf("got %q, want unsynced", got)
	}
	writeState(t, path, desired.Drain)
	p.Signal(syscall.SIGHUP)
	hear("RELOADING=1\nMONOTONIC_USEC=")
	hear("READY=1")
	if got := ask(t, filepath.Join(dir, "agent"), "canary"); got != "drain 100%" {
		t.Errorf("after SIGHUP: %q, want drain 100%%", got)
	}
	p.Signal(syscall.SIGTERM)
	hear("STOPPING=1")
	if code := p.WaitExit(t); code != 0 {
		t.Errorf("exit status %d, want 0", code)
	}
}

// A socket that a killed process left behind is no obstacle; anything else is.
func TestStaleUnixSocket(t *testing.T) {
	dir := testpeer.Dir(t)
	path := filepath.Join(dir, "agent")
	run := func() *testpeer.Process {
		return testpeer.Start(t, program("", nil, "--state", stateFile(t, desired.Drain), "--listen", path, "--http.listen", ""))
	}
	first := run()
	first.WaitOutput(t, "answering agent checks")
	second := run()
	if code := second.WaitExit(t); code != 1 || !strings.Contains(second.Output(), "another process does") {
		t.Errorf("beside another one: exit status %d, %q", code, second.Output())
	}
	first.Kill(t)
	run().WaitOutput(t, "answering agent checks")
	if got := ask(t, path, "canary"); got != "drain 100%" {
		t.Errorf("got %q, want drain 100%%", got)
	}
}

func TestMemory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	f := &statefile.File{Root: "hadrain", ID: "6f1c", Index: 7, Host: "lb-1", Rendered: time.Now().UTC()}
	for i := range 1000 {
		f.Rows = append(f.Rows, desired.Row{Key: fmt.Sprintf("web/server-%04d", i), State: desired.Drain})
	}
	if err := statefile.Write(path, statefiletest.Format(f)); err != nil {
		t.Fatal(err)
	}
	agent, addr := listener(t)
	web, _ := listener(t)
	p := testpeer.Start(t, program("agent:http", []*os.File{agent, web}, "--state", path))
	for i := range 1000 {
		ask(t, addr, fmt.Sprintf("web/server-%04d canary", i))
	}
	anon := rssAnon(t, p.Pid())
	t.Logf("RssAnon %d kB", anon)
	if anon > 12<<10 && !raceEnabled {
		t.Errorf("RssAnon %d kB with 1,000 keys and rows, want at most 12 MB", anon)
	}
}

// rssAnon returns the memory of a process that is not of files, in kB.
func rssAnon(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		var kb int
		if n, _ := fmt.Sscanf(line, "RssAnon: %d kB", &kb); n == 1 {
			return kb
		}
	}
	t.Fatal("no RssAnon in /proc")
	return 0
}

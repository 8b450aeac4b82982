package tests_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	consulapi "github.com/hashicorp/consul/api"

	"hadrain/internal/haproxy"
	"hadrain/internal/testpeer"
)

// storyLimit is what the demonstration may take, as its documentation says.
const storyLimit = time.Minute

// startDev starts "hadrain dev" with its temporary directory in dir, which is
// what tells its processes from others. With consul it starts one of its own.
func startDev(t *testing.T, consul bool, flags ...string) (p *testpeer.Process, dir string) {
	t.Helper()
	testpeer.Need(t, "haproxy")
	dir = testpeer.Dir(t)
	program := testpeer.Build(t, "hadrain")
	path := filepath.Dir(program) + ":" + os.Getenv("PATH")
	args := append([]string{"dev"}, flags...)
	if consul {
		path = filepath.Dir(testpeer.Need(t, "consul")) + ":" + path
		args = append(args, "--consul")
	}
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "TMPDIR="+dir, "PATH="+path, "CONSUL_HTTP_ADDR=")
	return testpeer.Start(t, cmd), dir
}

// running returns the command lines of all processes that name dir.
func running(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		if bytes.Contains(line, []byte(dir)) {
			found = append(found, string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
		}
	}
	return found
}

// gone waits until no process names dir.
func gone(t *testing.T, dir string) {
	t.Helper()
	testpeer.WaitFor(t, "everything to end", func() (bool, string) {
		left := running(t, dir)
		return len(left) == 0, strings.Join(left, "\n")
	})
}

// empty fails unless nothing is left in dir.
func empty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 0 {
		t.Errorf("left behind in %s: %v, %v", dir, left, err)
	}
}

// TestDevDemo: the story of the README ends well within a minute, whatever the
// store, and leaves nothing behind.
func TestDevDemo(t *testing.T) {
	for name, consul := range map[string]bool{"embedded": false, "consul": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, dir := startDev(t, consul, "--demo")
			select {
			case <-p.Done():
			case <-time.After(storyLimit):
				t.Fatalf("still telling after %v:\n%s", storyLimit, p.Output())
			}
			if code := p.WaitExit(t); code != 0 {
				t.Errorf("exit status %d, want 0", code)
			}
			rest := p.Output()
			for _, want := range []string{
				"drain canary", "web/gke-cny-web is DRAIN (agent), api/api-cny is DRAIN (agent)",
				"HAProxy is reloaded", "web/gke-cny-web is DRAIN (agent), api/api-cny is DRAIN (agent)",
				"the store goes away", "3 more agent checks", "web/gke-cny-web is DRAIN (agent), api/api-cny is DRAIN (agent)",
				"maint canary", "web/gke-cny-web is MAINT, api/api-cny is MAINT",
				"ready canary", "of its weight", "requests went through HAProxy, 0 failed.",
			} {
				_, after, ok := strings.Cut(rest, want)
				if !ok {
					t.Errorf("the story lacks %q in its place", want)
					break
				}
				rest = after
			}
			if left := running(t, dir); len(left) != 0 {
				t.Errorf("left running:\n%s", strings.Join(left, "\n"))
			}
			empty(t, dir)
		})
	}
}

// TestDevEnds: signals end everything that was started; SIGKILL, too, which
// nobody can catch, and after which the next start tidies up.
func TestDevEnds(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			p, dir := startDev(t, true)
			p.WaitOutput(t, "REQUESTS/S")
			if n := len(running(t, dir)); n < 3 {
				t.Errorf("%d processes, want a consul, and a master and a worker of haproxy", n)
			}
			p.Signal(sig)
			code := p.WaitExit(t)
			gone(t, dir)
			if sig == syscall.SIGKILL { // the temporary directory stays until the next start
				next := exec.Command(testpeer.Build(t, "hadrain"), "dev")
				next.Env = append(os.Environ(), "TMPDIR="+dir)
				p := testpeer.Start(t, next)
				p.WaitOutput(t, "REQUESTS/S")
				code = p.Stop(t)
			}
			if code != 0 {
				t.Errorf("exit status %d, want 0", code)
			}
			empty(t, dir)
		})
	}
}

// TestDevCommands: the commands that it prints do what they say when they are
// typed in another terminal.
func TestDevCommands(t *testing.T) {
	p, dir := startDev(t, false)
	p.WaitOutput(t, "REQUESTS/S")
	_, text, _ := strings.Cut(p.Output(), "in another terminal:\n\n")
	text, _, _ = strings.Cut(text, "\n\n")
	commands := strings.Split(text, "\n")
	if len(commands) != 5 || !strings.HasPrefix(commands[0], "  export CONSUL_HTTP_ADDR=http://") {
		t.Fatalf("want an export and four commands to try:\n%s", p.Output())
	}
	sockets, err := filepath.Glob(dir + "/hadrain-dev-*/haproxy.sock")
	if err != nil || len(sockets) != 1 {
		t.Fatalf("sockets %v, %v", sockets, err)
	}
	for i, want := range []haproxy.Admin{haproxy.FDRAIN, haproxy.FDRAIN, haproxy.FDRAIN, 0} {
		cmd := exec.Command("/bin/sh", "-c", commands[0]+"\n"+commands[i+1])
		cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(testpeer.Build(t, "hadrain"))+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", commands[i+1], err, out)
		}
		t.Logf("%s\n%s", commands[i+1], out)
		if strings.Contains(commands[i+1], " query ") && string(out) != "drain 100%\n" {
			t.Errorf("%s\n%s", commands[i+1], out)
		}
		testpeer.WaitFor(t, "HAProxy to follow "+commands[i+1], func() (bool, string) {
			rows, err := haproxy.ServersState(t.Context(), sockets[0])
			if err != nil {
				return false, err.Error()
			}
			ok, seen := true, []string{}
			for _, s := range rows {
				canary := strings.Contains(s.Server, "cny")
				seen = append(seen, fmt.Sprintf("%s: %v", s.Key(), s.Admin))
				ok = ok && (canary && s.Admin == want || !canary && s.Admin == 0)
			}
			return ok, strings.Join(seen, ", ")
		})
	}
	if code := p.Stop(t); code != 0 {
		t.Errorf("exit status %d, want 0", code)
	}
	gone(t, dir)
	empty(t, dir)
}

// TestDevRunningConsul: in a Consul that was there before, dev works under a
// root of its own, leaves hadrain/ alone and takes its keys away.
func TestDevRunningConsul(t *testing.T) {
	testpeer.Need(t, "haproxy")
	consul := testpeer.Consul(t, testpeer.ConsulConfig{TCP: true})
	kv := consul.Client(t).KV()
	if _, err := kv.Put(&consulapi.KVPair{Key: "hadrain/state/canary", Value: []byte("drain")}, nil); err != nil {
		t.Fatal(err)
	}
	dir := testpeer.Dir(t)
	cmd := exec.Command(testpeer.Build(t, "hadrain"), "dev", "--consul")
	cmd.Env = append(os.Environ(), "TMPDIR="+dir, "CONSUL_HTTP_ADDR="+consul.Addr())
	p := testpeer.Start(t, cmd)
	p.WaitOutput(t, "REQUESTS/S")
	if keys, _, err := kv.Keys("hadrain-dev-", "", nil); err != nil || len(keys) != 1 || !strings.HasSuffix(keys[0], "/state/.hadrain") {
		t.Errorf("keys %v, %v, want the sentinel under a root of its own", keys, err)
	}
	if strings.Contains(p.Output(), "drain (canary)") || !strings.Contains(p.Output(), "HADRAIN_KV_ROOT=hadrain-dev-") {
		t.Errorf("it follows somebody else's keys:\n%s", p.Output())
	}
	if code := p.Stop(t); code != 0 {
		t.Errorf("exit status %d, want 0", code)
	}
	if keys, _, err := kv.Keys("", "", nil); err != nil || len(keys) != 1 || keys[0] != "hadrain/state/canary" {
		t.Errorf("keys %v, %v, want only the one that was there before", keys, err)
	}
	gone(t, dir)
	empty(t, dir)
}

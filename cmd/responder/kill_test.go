package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"hadrain/internal/desired"
	"hadrain/internal/testpeer"
)

// Ten SIGKILLs and ten restarts under a parent that holds the socket: no reply
// differs from the state, and only checks in flight at a kill are reset.
// $HADRAIN_TEST_CHECKS is how many checks are asked, 20,000 if empty.
func TestKilledAgainAndAgain(t *testing.T) {
	const deaths = 20
	checks := int64(20_000)
	if raceEnabled {
		checks = 5_000
	}
	if text := os.Getenv("HADRAIN_TEST_CHECKS"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatalf("HADRAIN_TEST_CHECKS: %v", err)
		}
		checks = n
	}
	agent, addr := listener(t)
	path := stateFile(t, desired.Drain)
	start := func() *testpeer.Process {
		return testpeer.Start(t, program("agent", []*os.File{agent}, "--state", path))
	}
	const askers = 8
	var asked, resets atomic.Int64
	var wg sync.WaitGroup
	for range askers {
		wg.Go(func() {
			for asked.Add(1) <= checks {
				switch got, err := try(addr); {
				case isReset(err):
					resets.Add(1)
				case err != nil:
					t.Errorf("asking: %v", err)
					return
				case got != "drain 100%\n":
					t.Errorf("got %q, want drain 100%%", got)
					return
				}
			}
		})
	}
	p := start()
	for i := range int64(deaths) {
		testpeer.WaitFor(t, "the next death's time", func() (bool, string) {
			n := asked.Load()
			return n > checks*(i+1)/(deaths+2) || t.Failed(), strconv.FormatInt(n, 10)
		})
		if i%2 == 0 {
			p.Kill(t)
			p = start()
			continue
		}
		p.WaitOutput(t, "answering agent checks") // before that SIGTERM just ends it
		if code := p.Stop(t); code != 0 {
			t.Errorf("exit status %d after SIGTERM, want 0", code)
		}
		p = start()
	}
	wg.Wait()
	// At a kill every asker can have one check in flight.
	if n := resets.Load(); n > askers*deaths/2 {
		t.Errorf("%d checks reset, want at most %d", n, askers*deaths/2)
	}
	t.Logf("%d checks, %d reset", checks, resets.Load())
}

// try asks for canary once and closes with a reset, as HAProxy does.
func try(addr string) (string, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if err := errors.Join(c.(*net.TCPConn).SetLinger(0), c.SetDeadline(time.Now().Add(20*time.Second))); err != nil {
		return "", err
	}
	if _, err := io.WriteString(c, "web/a canary\n"); err != nil {
		return "", err
	}
	var b [64]byte
	n, err := c.Read(b[:])
	return string(b[:n]), err
}

// isReset reports whether a connection ended without an answer.
func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.EOF)
}

// idleVariable makes the test binary open silent connections: ADDRESS COUNT.
const idleVariable = "HADRAIN_TEST_IDLE"

// idle opens count connections to addr, says so, and keeps opening new ones for
// those that were closed, until its standard input ends.
func idle(addr string, count int) error {
	conns := make([]net.Conn, 0, count)
	for range count {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return err
		}
		conns = append(conns, c)
	}
	fmt.Println("idle")
	go func() {
		for i := 0; ; i = (i + 1) % count {
			conns[i].Close()
			if c, err := net.Dial("tcp", addr); err == nil {
				conns[i] = c
				if i%2 == 0 { // and some begin a line that never ends
					_, _ = io.WriteString(c, "can")
				}
			}
		}
	}()
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// 10,000 idle connections from two processes, and ever new ones: checks go on,
// and memory is bounded.
func TestIdleConnections(t *testing.T) {
	agent, addr := listener(t)
	p := testpeer.Start(t, program("agent", []*os.File{agent}, "--state", stateFile(t, desired.Drain)))
	for range 2 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), idleVariable+"="+addr+" 5000")
		stdin, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		defer stdin.Close()
		testpeer.Start(t, cmd).WaitOutput(t, "idle")
	}
	for range 500 {
		if got, err := try(addr); got != "drain 100%\n" {
			t.Fatalf("got %q, %v, want drain 100%%", got, err)
		}
	}
	if anon := rssAnon(t, p.Pid()); anon > 60<<10 && !raceEnabled {
		t.Errorf("RssAnon %d kB under attack, want at most 60 MB", anon)
	}
}

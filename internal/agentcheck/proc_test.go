package agentcheck_test

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
)

// timeWaits counts the IPv4 connections of a local port in TIME_WAIT, state 06
// in /proc/net/tcp (proc(5)).
func timeWaits(t *testing.T, port int) int {
	t.Helper()
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		t.Fatal(err)
	}
	n, local := 0, fmt.Sprintf(":%04X", port)
	for line := range strings.Lines(string(table)) {
		f := strings.Fields(line)
		if len(f) > 3 && f[3] == "06" && strings.HasSuffix(f[1], local) {
			n++
		}
	}
	return n
}

// checkOnce is check for more than one goroutine.
func checkOnce(t *testing.T, to *syscall.SockaddrInet4) {
	fd, err := connect(to)
	if err != nil {
		t.Errorf("connecting: %v", err)
		return
	}
	defer func() { _ = hangUp(fd) }()
	var b [64]byte
	n := 0
	if _, err = syscall.Write(fd, question); err == nil {
		n, err = syscall.Read(fd, b[:])
	}
	if got := string(b[:max(n, 0)]); err != nil || got != "drain 100%\n" {
		t.Errorf("got %q, %v, want drain 100%%", got, err)
	}
}

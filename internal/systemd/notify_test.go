package systemd_test

import (
	"bytes"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hadrain/internal/systemd"
)

// A systemd that reads nothing holds nobody up, and learns that the daemon is
// ready once it reads again.
func TestNotifyWithoutRoom(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	var out bytes.Buffer
	n := systemd.NewNotifier(slog.New(slog.NewTextHandler(&out, nil)))
	for sent := 0; out.Len() == 0; sent++ {
		if n.Notify("WATCHDOG=1"); sent > 100_000 {
			t.Fatal("there is always room")
		}
	}
	n.Notify("READY=1\nSTATUS=1 key")
	n.Notify("WATCHDOG=1")
	if lines := strings.Count(out.String(), "\n"); lines != 1 || !strings.Contains(out.String(), "systemd takes no messages") {
		t.Errorf("%d lines, want one that says it:\n%s", lines, &out)
	}
	for err = nil; err == nil; _, err = manager.Read(make([]byte, 100)) {
		_ = manager.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	}
	for _, want := range []string{"READY=1\nWATCHDOG=1\nSTATUS=2 keys", "WATCHDOG=1\nSTATUS=2 keys"} {
		n.Notify("WATCHDOG=1\nSTATUS=2 keys")
		text := make([]byte, 100)
		_ = manager.SetReadDeadline(time.Now().Add(10 * time.Second))
		size, err := manager.Read(text)
		if got := string(text[:size]); err != nil || got != want {
			t.Errorf("systemd was told %q, %v, want %q", got, err, want)
		}
	}
}

// Without systemd nothing happens, and a socket that is gone is no trouble.
func TestNotifyNobody(t *testing.T) {
	for _, socket := range []string{"", filepath.Join(t.TempDir(), "gone")} {
		t.Setenv("NOTIFY_SOCKET", socket)
		var out bytes.Buffer
		if systemd.NewNotifier(slog.New(slog.NewTextHandler(&out, nil))).Notify("READY=1"); out.Len() > 0 {
			t.Errorf("socket %q: %s", socket, &out)
		}
	}
}

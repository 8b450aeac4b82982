package haproxy_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"hadrain/internal/haproxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve accepts one connection on l, reads one line and hands both to answer,
// then closes the connection. The returned function waits for the end.
func serve(t *testing.T, l net.Listener, answer func(conn net.Conn, line string)) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		line, err := bufio.NewReader(conn).ReadString('\n')
		if err != nil {
			return
		}
		answer(conn, line)
	}()
	t.Cleanup(func() { l.Close(); <-done })
}

func listen(t *testing.T, network string) (net.Listener, string) {
	t.Helper()
	addr := "127.0.0.1:0"
	if network == "unix" {
		addr = filepath.Join(t.TempDir(), "haproxy.sock")
	}
	l, err := net.Listen(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	return l, l.Addr().String()
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestCommand(t *testing.T) {
	for name, prefix := range map[string]string{"unix": "", "unix@": "unix@", "tcp": "", "ipv4@": "ipv4@"} {
		t.Run(name, func(t *testing.T) {
			network := "tcp"
			if strings.HasPrefix(name, "unix") {
				network = "unix"
			}
			l, addr := listen(t, network)
			serve(t, l, func(conn net.Conn, line string) {
				_, _ = io.WriteString(conn, "you said "+line+"\n")
			})
			got, err := haproxy.Command(within(t), prefix+addr, "show info")
			if err != nil || got != "you said show info\n" {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestCommandErrors(t *testing.T) {
	for name, c := range map[string]struct{ answer, want string }{
		"unknown":  {"Unknown command: 'show x', but maybe one of the following ones is a better match:\n  show acl\n\n", "refused by haproxy: Unknown command: 'show x'"},
		"level":    {"Permission denied\n\n", "refused by haproxy: Permission denied"},
		"cut":      {"1\n# be_id be_na", "answer ends in the middle after 15 bytes"},
		"no bytes": {"", "answer ends in the middle after 0 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			l, addr := listen(t, "unix")
			serve(t, l, func(conn net.Conn, _ string) { _, _ = io.WriteString(conn, c.answer) })
			_, err := haproxy.Command(within(t), addr, "show x")
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want %q", err, c.want)
			}
			if !strings.Contains(err.Error(), addr) || !strings.Contains(err.Error(), `"show x"`) {
				t.Errorf("error %v: names neither the socket nor the command", err)
			}
			if errors.Is(err, haproxy.ErrRefused) != strings.HasPrefix(c.want, "refused") {
				t.Errorf("error %v: wrong kind", err)
			}
		})
	}
}

func TestCommandRefusesOperands(t *testing.T) {
	for _, cmd := range []string{"", "show info\nshut", "a\rb", "a\x00b"} {
		if _, err := haproxy.Command(within(t), "/nowhere", cmd); err == nil || !strings.Contains(err.Error(), "one line of text") {
			t.Errorf("command %q: error %v", cmd, err)
		}
	}
	for _, addr := range []string{"", "haproxy.sock", "127.0.0.1"} {
		if _, err := haproxy.Command(within(t), addr, "show info"); err == nil || !strings.Contains(err.Error(), "want an absolute path or HOST:PORT") {
			t.Errorf("address %q: error %v", addr, err)
		}
	}
	gone := filepath.Join(t.TempDir(), "gone.sock")
	if _, err := haproxy.ReadInfo(within(t), gone); err == nil || !strings.Contains(err.Error(), gone) {
		t.Errorf("no socket: error %v", err)
	}
}

// TestCommandCancelled: a worker that hangs cannot hold the caller.
func TestCommandCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	l, addr := listen(t, "unix")
	serve(t, l, func(conn net.Conn, _ string) {
		cancel(errors.New("enough"))
		_, _ = io.Copy(io.Discard, conn) // until the client gives up
	})
	_, err := haproxy.ServersState(ctx, addr)
	if err == nil || !strings.Contains(err.Error(), "no complete answer: enough") {
		t.Errorf("error %v", err)
	}
}

// TestRows: each reader asks its own command and names it when it fails.
func TestRows(t *testing.T) {
	for cmd, read := range map[string]func(context.Context, string) (int, error){
		"show servers state": func(ctx context.Context, addr string) (int, error) {
			rows, err := haproxy.ServersState(ctx, addr)
			return len(rows), err
		},
		"show stat": func(ctx context.Context, addr string) (int, error) {
			rows, err := haproxy.Stats(ctx, addr)
			return len(rows), err
		},
		"show info": func(ctx context.Context, addr string) (int, error) {
			info, err := haproxy.ReadInfo(ctx, addr)
			return info.PID, err
		},
	} {
		t.Run(cmd, func(t *testing.T) {
			answer := captured(t, strings.ReplaceAll(cmd, " ", "_")+"_2.6.txt")
			l, addr := listen(t, "unix")
			serve(t, l, func(conn net.Conn, line string) {
				if line == cmd+"\n" {
					_, _ = io.WriteString(conn, answer)
				}
			})
			if n, err := read(within(t), addr); err != nil || n == 0 {
				t.Errorf("%d rows, %v", n, err)
			}
			l, addr = listen(t, "unix")
			serve(t, l, func(conn net.Conn, _ string) { _, _ = io.WriteString(conn, "nonsense\n\n") })
			if _, err := read(within(t), addr); err == nil || !strings.Contains(err.Error(), addr) || !strings.Contains(err.Error(), cmd) {
				t.Errorf("nonsense: error %v", err)
			}
		})
	}
}

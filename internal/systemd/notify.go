// Package systemd tells systemd how a daemon is, see sd_notify(3).
package systemd

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// sendTimeout is how long a message to systemd may wait for room.
const sendTimeout = 250 * time.Millisecond

// A Notifier sends messages to systemd. The library would wait for ever for a
// systemd that reads nothing, as it does after a crash of its own ("Freezing
// execution"), and the daemon would do nothing else any more.
type Notifier struct {
	socket string // "": nobody is to be told
	log    *slog.Logger

	mu     sync.Mutex
	deaf   bool   // the last message found no room
	unsaid string // what was lost and still has to be said
}

// NewNotifier returns a Notifier to the socket that $NOTIFY_SOCKET names. Where it
// names none, on a laptop, nothing is sent.
func NewNotifier(log *slog.Logger) *Notifier {
	return &Notifier{socket: os.Getenv("NOTIFY_SOCKET"), log: log}
}

// Notify sends state, or gives it up if there is no room for it within 250 ms. Of
// what is lost only that the daemon is ready is said again, with the next message:
// the rest is news by then. Any goroutine may call it.
func (n *Notifier) Notify(state string) {
	if n.socket == "" {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if strings.HasPrefix(state, daemon.SdNotifyReloading) {
		n.unsaid = "" // it is said again at the end of the reload
	}
	err := n.send(n.unsaid + state)
	deaf := errors.Is(err, os.ErrDeadlineExceeded)
	switch {
	case !deaf:
		n.unsaid = "" // other errors are systemd's business
	case strings.HasPrefix(state, daemon.SdNotifyReady):
		n.unsaid = daemon.SdNotifyReady + "\n"
	}
	if deaf && !n.deaf {
		n.log.Warn("systemd takes no messages, going on without", "error", err)
	}
	n.deaf = deaf
}

func (n *Notifier) send(text string) error {
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: n.socket, Net: "unixgram"})
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // a datagram was sent or not
	if err := conn.SetWriteDeadline(time.Now().Add(sendTimeout)); err != nil {
		return err
	}
	_, err = conn.Write([]byte(text))
	return err
}
